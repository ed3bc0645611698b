package metadata

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
)

// CountMembers returns how many nodes the cluster has according to the metadata in a
// directory, which must not be open; 0 if there are none.
func CountMembers(dir string) (members int, err error) {
	layout, err := ReadLayout(dir)
	return len(layout.Nodes), err
}

// ReadLayout reads the cluster, its members and the partition table from the metadata in a
// directory, which must not be open. The result is empty if there are none.
func ReadLayout(dir string) (*Layout, error) {
	st, err := readDir(dir)
	return st.layout(), err
}

// ReadNodes reads the nodes from the metadata in a directory, which must not be open, with those that
// were removed; there are none without metadata.
func ReadNodes(dir string) ([]Node, error) {
	st, err := readDir(dir)
	return st.nodes, err
}

// readDir reads the metadata in a directory. The result is empty if there are none, and after an error.
func readDir(dir string) (*state, error) {
	path := filepath.Join(dir, "state.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return &state{}, nil
	}
	db, err := openDatabase(path)
	if err != nil {
		return &state{}, err
	}
	st, _, err := db.load()
	if err != nil {
		st = &state{}
	}
	return st, errors.Join(err, db.close())
}

// RemovalReason returns why a node with that name and incarnation is no longer a member, ""
// if it is one or unknown here. Incarnations are ordered by creation time, so a record of
// an older one, which this replica may still have, proves nothing.
func (s *Store) RemovalReason(name, incarnation string) string {
	return RemovalReason(s.source.current().nodes, name, incarnation)
}

// RemovalReason is Store.RemovalReason for nodes that ReadNodes has returned.
func RemovalReason(nodes []Node, name, incarnation string) string {
	for _, n := range nodes {
		switch {
		case n.Name != name:
		case n.Incarnation == incarnation && n.Removed:
			return "it was removed by an operator, or left behind when the cluster was recovered from another node"
		case n.Incarnation > incarnation:
			return "another data directory has taken its place"
		}
	}
	return ""
}

// RemovedNodes returns the nodes that are no longer members.
func (s *Store) RemovedNodes() []Node {
	return slices.DeleteFunc(slices.Clone(s.source.current().nodes), func(n Node) bool { return !n.Removed })
}

// RemovedError means that a node was removed from the cluster. It matches ErrNodeRemoved.
type RemovedError struct {
	Node   string
	Reason string
	Data   string // directory of the node
}

// Error also explains what to do.
func (e *RemovedError) Error() string {
	return fmt.Sprintf("node %s was removed from the cluster: %s; its data is no longer used. Stop using this node, or let it join again as a new one: "+
		"move %s away and start it", e.Node, strings.TrimSuffix(e.Reason, "."), e.Data)
}

// Is reports whether target is ErrNodeRemoved.
func (e *RemovedError) Is(target error) bool { return target == ErrNodeRemoved }

// ForceOnlyMember makes server the only member of the metadata group in a directory, which
// must not be open, as hardstate.ForceConfiguration does. hard is the record of the group's
// term and vote.
func ForceOnlyMember(dir string, hard *hardstate.State, server raft.Server, logger *slog.Logger) (err error) {
	r := &replica{log: logger}
	defer func() { err = errors.Join(err, r.closeFiles()) }()
	if r.db, err = openDatabase(filepath.Join(dir, "state.db")); err != nil {
		return err
	}
	if r.fsm, err = newFSM(r.db); err != nil {
		return err
	}
	if r.storage, err = logstore.OpenBolt(filepath.Join(dir, "log.db"), logstore.BoltOptions{Logger: logger}); err != nil {
		return err
	}
	_, err = hardstate.ForceConfiguration(r.storage, hard, r.fsm.Applied(), []raft.Server{server})
	return err
}
