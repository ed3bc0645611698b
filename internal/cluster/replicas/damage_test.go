package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/cluster"
	"platform/internal/pebbledb"
	nodepb "platform/proto/node"
)

// nodes are the other nodes of a cluster, whose statuses are those of their reconcilers.
type nodes struct {
	Nodes
	reconcilers []*Reconciler
	replicas    []string // by node; "-" if it does not respond
	draining    int      // index of a node that is about to stop, -1: none
}

func (n *nodes) Statuses(context.Context, bool) cluster.Statuses {
	all := cluster.Statuses{}
	for i, id := range n.replicas {
		if id == "-" {
			continue
		}
		r := &nodepb.ReplicaStatus{Partition: 7, ReplicaId: id, State: "Follower"}
		if reason := n.reconcilers[i].Quarantine(7); reason != "" {
			r = &nodepb.ReplicaStatus{Partition: 7, ReplicaId: id, State: "Quarantined", Quarantine: reason}
		}
		all[uint32(i)] = &nodepb.StatusResponse{Replicas: []*nodepb.ReplicaStatus{{Partition: 6, ReplicaId: "other"}, r}, Draining: i == n.draining}
	}
	return all
}

// damagedNodes returns the reconcilers of nodes that have these replicas of partition 7.
func damagedNodes(replicas ...string) *nodes {
	n := &nodes{replicas: replicas, draining: -1}
	for i := range replicas {
		self := raft.Server{ID: raft.ServerID(fmt.Sprintf("%c/x", 'a'+i))}
		n.reconcilers = append(n.reconcilers, &Reconciler{cfg: Config{Node: self, Nodes: n, Log: slog.New(slog.DiscardHandler)}})
	}
	return n
}

// openReplica is a replica with damaged data.
type openReplica struct {
	voters      []string
	quarantined bool
}

func (r *openReplica) Voters() []string { return r.voters }
func (r *openReplica) Quarantine(error) { r.quarantined = true }

// quarantineDispensable reports damage in the replica on a node, and returns whether it was quarantined.
func (n *nodes) quarantineDispensable(i int, voters []string) bool {
	r := &openReplica{voters: voters}
	file := pebbledb.DamagedFile{Path: "state/000007.sst", Reason: errors.New("checksum mismatch")}
	n.reconcilers[i].quarantineDispensable(context.Background(), map[uint32]*damagedReplica{7: {replica: r, reason: file}})
	return r.quarantined
}

// A replica with damaged data is quarantined only if the others are a majority without it: until it is rebuilt, the
// partition depends on them.
func TestReplicasThatAreNeededAreNotQuarantined(t *testing.T) {
	for name, c := range map[string]struct {
		voters  string
		serving string // on nodes a, b, ...; - is none
		want    bool
	}{
		"the only one":                    {"a/x", "a/x", false},
		"one of two":                      {"a/x b/x", "a/x b/x", false},
		"one of three":                    {"a/x b/x#2 c/x", "a/x b/x#2 c/x", true},
		"one of three, one down":          {"a/x b/x#2 c/x", "a/x b/x#2 - d/x", false},
		"one of three, one being rebuilt": {"a/x b/x#2 c/x", "a/x b/x#3 c/x", false},
		"a nonvoter":                      {"b/x c/x d/x", "a/x b/x c/x", true},
		"one of four, one down":           {"a/x b/x c/x d/x", "a/x b/x c/x -", false},
		"one of five, two down":           {"a/x b/x c/x d/x e/x", "a/x b/x c/x - -", false},
		"one of five, one down":           {"a/x b/x c/x d/x e/x", "a/x b/x c/x d/x -", true},
		"another incarnation runs":        {"a/x b/x c/x", "a/x b/y c/x", false},
	} {
		n := damagedNodes(strings.Fields(c.serving)...)
		require.Equal(t, c.want, n.quarantineDispensable(0, strings.Fields(c.voters)), name)
		require.Equal(t, c.want, n.reconcilers[0].Quarantine(7) != "", name)
	}
	n := damagedNodes("a/x", "b/x", "c/x")
	n.draining = 2
	require.False(t, n.quarantineDispensable(0, n.replicas), "a node is about to stop")
}

// Two of three replicas with damage must not both give up: only the third one would remain, which may lack committed entries.
func TestDamageOnTwoNodes(t *testing.T) {
	n := damagedNodes("a/x", "b/x", "c/x")
	require.True(t, n.quarantineDispensable(0, n.replicas))
	require.False(t, n.quarantineDispensable(1, n.replicas))
	require.True(t, n.reconcilers[0].quarantine.add(7, "when it has stopped"))
	require.False(t, n.quarantineDispensable(1, n.replicas))
	n.reconcilers[0].quarantine.rebuilt(7, time.Now())
	n.replicas[0] = "a/x#1"
	require.False(t, n.quarantineDispensable(1, []string{"a/x", "b/x", "c/x"}), "it has no vote yet")
	require.True(t, n.quarantineDispensable(1, n.replicas))

	for range 1000 {
		n := damagedNodes("a/x", "b/x", "c/x")
		var gaveUp [2]bool
		var wg sync.WaitGroup
		for i := range gaveUp {
			wg.Go(func() { gaveUp[i] = n.quarantineDispensable(i, n.replicas) })
		}
		wg.Wait()
		require.NotEqual(t, [2]bool{true, true}, gaveUp)
		if gaveUp == [2]bool{} {
			require.True(t, n.quarantineDispensable(0, n.replicas), "when the damage is reported again")
		}
	}
}
