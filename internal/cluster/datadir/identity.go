package datadir

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

// Identity identifies a data directory. A node that lost its directory gets a new identity, so
// that its replicas are not mistaken for those that voted with the old one.
type Identity struct {
	Cluster     string `json:"cluster_name"`
	Node        string `json:"node_name"`
	Incarnation string `json:"incarnation"`
	// Founder marks the node that created the cluster, the first replica of every partition.
	// If it loses its directory, it must not create the partitions again.
	Founder bool `json:"founder,omitempty"`
	// HardState is set if the directory has a hard-state file.
	HardState bool `json:"hard_state,omitempty"`
	// NextIncarnation is set while a recovery makes this node the only member of its
	// Raft groups. The directory cannot be used until the recovery is complete.
	NextIncarnation string `json:"next_incarnation,omitempty"`
	// Sole makes the next start remove all other nodes from the cluster.
	Sole bool `json:"sole,omitempty"`
	// RecoveredAt is when the cluster was last recovered from this directory.
	RecoveredAt time.Time `json:"recovered_at,omitzero"`
}

// LoadIdentity reads the identity of the directory, or creates one in a fresh directory. It fails if the
// directory belongs to another cluster or node, for instance because it was renamed.
func (d *Dir) LoadIdentity(cluster, node string) (Identity, error) {
	raw, err := os.ReadFile(d.In("IDENTITY"))
	if errors.Is(err, fs.ErrNotExist) {
		// The file is written before all data.
		if held := d.Holds(LogDir, StateDir, MetadataDir, HardStateFile); held != "" {
			return Identity{}, errcode.New(errcode.RT0009, "data directory %s holds %q but no IDENTITY file, so it is damaged; restore the file; %s", d.path, held, RemedyRejoin)
		}
		id := Identity{Cluster: cluster, Node: node, Incarnation: ulid.Make().String()}
		return id, d.SaveIdentity(id)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read node identity: %w", err)
	}
	var id Identity
	if err := json.Unmarshal(raw, &id); err != nil {
		return Identity{}, errcode.New(errcode.RT0009, "node identity %s is damaged: %w", d.In("IDENTITY"), err)
	}
	if id.NextIncarnation != "" {
		return Identity{}, errcode.New(errcode.RT0009, "the recovery of data directory %s was not finished; run `platform-server recover` again", d.path)
	}
	if id.Cluster != cluster {
		return Identity{}, fmt.Errorf("data directory %s belongs to cluster %q, not %q; set cluster-name accordingly or choose another --base-dir", d.path, id.Cluster, cluster)
	}
	if id.Node != node { // two servers that both act as this node would lose acknowledged data
		return Identity{}, errcode.New(errcode.RT0009, "data directory %s belongs to node %q, not %q, according to its IDENTITY file; to run that node, rename the directory to %s and set node-name to %s; for a new node, remove the directory", d.path, id.Node, node, id.Node, id.Node)
	}
	return id, nil
}

// ReadIdentity returns the identity of the directory, even during a recovery.
func (d *Dir) ReadIdentity() (id Identity, err error) {
	raw, err := os.ReadFile(d.In("IDENTITY"))
	if err == nil {
		err = json.Unmarshal(raw, &id)
	}
	if err != nil {
		return id, errcode.New(errcode.RT0009, "node identity %s cannot be read: %w", d.In("IDENTITY"), err)
	}
	return id, nil
}

// SaveIdentity durably replaces the identity of the directory.
func (d *Dir) SaveIdentity(id Identity) error {
	raw, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	return d.ReplaceFile("IDENTITY", append(raw, '\n'))
}

// ReplicaID returns the Raft server ID of all replicas on the node.
func (id Identity) ReplicaID() string { return id.Node + "/" + id.Incarnation }

// Holds returns the first of the named entries that exists in the directory, "" if none does.
func (d *Dir) Holds(names ...string) string {
	for _, name := range names {
		if _, err := os.Stat(d.In(name)); err == nil {
			return name
		}
	}
	return ""
}
