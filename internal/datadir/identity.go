package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/oklog/ulid/v2"

	"platform/internal/errcode"
)

// identity is what a data directory knows of itself. A node that lost its
// directory gets a new one and so cannot be taken for the replica that made
// promises with the old one.
type identity struct {
	Cluster     string `json:"cluster_name"`
	Node        string `json:"node_name"`
	Incarnation string `json:"incarnation"`
	// Founder is the node that created the cluster, and so the first replica of every
	// partition. One that lost its directory is not: it must not begin them again.
	Founder bool `json:"founder,omitempty"`
	// NextIncarnation is set while a recovery makes this node the only member of its
	// Raft groups. The directory cannot be used before it has been finished.
	NextIncarnation string `json:"next_incarnation,omitempty"`
	// Sole says that the next start removes all other nodes from the cluster.
	Sole bool `json:"sole,omitempty"`
	// RecoveredAt is when the cluster was last recovered from this directory.
	RecoveredAt time.Time `json:"recovered_at,omitzero"`
}

// loadIdentity reads the directory's identity, or makes one for a fresh directory.
func (d *dataDir) loadIdentity(cluster, node string) (identity, error) {
	raw, err := os.ReadFile(d.in("IDENTITY"))
	if errors.Is(err, fs.ErrNotExist) {
		// The file is older than all data.
		if held := d.holds(logDir, stateDir, metadataDir, hardStateFile); held != "" {
			return identity{}, errcode.New(errcode.RT0009, "data directory %s holds %q but no IDENTITY file, so it is damaged; restore the file; %s", d.path, held, remedyRejoin)
		}
		id := identity{Cluster: cluster, Node: node, Incarnation: ulid.Make().String()}
		return id, d.saveIdentity(id)
	}
	if err != nil {
		return identity{}, fmt.Errorf("read node identity: %w", err)
	}
	var id identity
	if err := json.Unmarshal(raw, &id); err != nil {
		return identity{}, errcode.New(errcode.RT0009, "node identity %s is damaged: %w", d.in("IDENTITY"), err)
	}
	if id.NextIncarnation != "" {
		return identity{}, errcode.New(errcode.RT0009, "the recovery of data directory %s was not finished; run `platform-server recover` again", d.path)
	}
	if id.Cluster != cluster {
		return identity{}, fmt.Errorf("data directory %s belongs to cluster %q, not %q; set cluster-name accordingly or choose another --base-dir", d.path, id.Cluster, cluster)
	}
	return id, nil
}

// Identity is whose data directory it is, for tools.
type Identity struct {
	Node, Incarnation string
	Replica           string // Raft server id of the replicas that were never rebuilt
	Recovering        bool   // a recovery was not finished
	Sole              bool   // it was, and the other nodes are removed at the next start
}

// ReadIdentity reads the identity of a data directory.
func ReadIdentity(path string) (Identity, error) {
	id, err := (&dataDir{path: path}).readIdentity()
	if err != nil {
		return Identity{}, err
	}
	return Identity{Node: id.Node, Incarnation: id.Incarnation, Replica: id.replicaID(), Recovering: id.NextIncarnation != "", Sole: id.Sole}, nil
}

func (d *dataDir) saveIdentity(id identity) error {
	raw, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	return d.writeFile("IDENTITY", append(raw, '\n'))
}

// replicaID is the Raft server id of all replicas on the node.
func (id identity) replicaID() string { return id.Node + "/" + id.Incarnation }

// holds is the first of the named entries that the directory has, "" if it has none.
func (d *dataDir) holds(names ...string) string {
	for _, name := range names {
		if _, err := os.Stat(d.in(name)); err == nil {
			return name
		}
	}
	return ""
}
