package eventlog

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var epoch = time.Unix(1_800_000_000, 0).UTC()

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// base is the view of n1 in a cluster of two nodes.
func base() *View {
	return &View{
		At: at(100), Self: "n1", Level: 3,
		Nodes: map[string]Node{
			"n1": {State: Alive, Started: at(1), Version: "1.0"},
			"n2": {State: Alive, Started: at(2), Version: "1.0"},
		},
		Replicas: map[uint32]Replica{0: {Leading: true, Term: 4}, 1: {Term: 5}},
	}
}

// lines formats events, with their seconds since the epoch.
func lines(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s", int(e.At.Sub(epoch).Seconds()), e.Kind)
		if e.Node != "" {
			fmt.Fprintf(&b, " %s", e.Node)
		}
		if e.Partition != NoPartition {
			fmt.Fprintf(&b, " p%d", e.Partition)
		}
		if e.Detail != "" {
			fmt.Fprintf(&b, " (%s)", e.Detail)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestChanges(t *testing.T) {
	set := func(v *View, name string, change func(*Node)) {
		n := v.Nodes[name]
		change(&n)
		v.Nodes[name] = n
	}
	for name, c := range map[string]struct {
		change func(*View)
		want   string
	}{
		"nothing": {func(*View) {}, ""},
		"a node no longer responds": {func(v *View) {
			set(v, "n2", func(n *Node) { n.State, n.Since = Dead, at(103) })
		}, "103 node_died n2\n"},
		"a node stops": {func(v *View) {
			set(v, "n2", func(n *Node) { n.State, n.Since = Left, at(103) })
		}, "103 node_stopped n2\n"},
		"a node has restarted between two views": {func(v *View) {
			set(v, "n2", func(n *Node) { n.Started, n.Version = at(104), "1.1" })
		}, "104 node_started n2 (1.1)\n"},
		"a node joins":      {func(v *View) { v.Nodes["n3"] = Node{State: Alive} }, "105 node_joined n3\n"},
		"a node is removed": {func(v *View) { delete(v.Nodes, "n2") }, "105 node_removed n2\n"},
		"a node is drained": {func(v *View) {
			set(v, "n2", func(n *Node) { n.Draining = true })
		}, "105 node_draining n2\n"},
		"elections": {func(v *View) {
			v.Replicas[0], v.Replicas[1] = Replica{Leading: true, Term: 6}, Replica{Leading: true, Term: 7}
			v.LeadsMetadata = true
		}, "105 leader_elected n1 p0 (term 6)\n105 leader_elected n1 p1 (term 7)\n105 metadata_leader n1\n"},
		"a leader steps down": {func(v *View) { v.Replicas[0] = Replica{Term: 6} }, ""},
		"replicas come and go": {func(v *View) {
			delete(v.Replicas, 1)
			v.Replicas[2] = Replica{}
		}, "105 replica_added n1 p2\n105 replica_removed n1 p1\n"},
		"a replica is damaged": {func(v *View) {
			v.Replicas[1] = Replica{Term: 5, Damage: "its log is shorter than its vote"}
		}, "105 replica_damaged n1 p1 (its log is shorter than its vote)\n"},
		"the disk fills up":   {func(v *View) { v.Disk = "fills up (90 MiB free)" }, "105 disk_short n1 (fills up (90 MiB free))\n"},
		"the level is raised": {func(v *View) { v.Level = 4 }, "105 feature_level_raised (4)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			after := base()
			after.At = at(105)
			c.change(after)
			require.Equal(t, c.want, lines(changesBetween(base(), after)))
		})
	}
	require.Equal(t, "1 node_started n1 (1.0)\n100 leader_elected n1 p0 (term 4)\n", lines(changesBetween(nil, base())), "the first view")
}

func TestConditionsThatEndAreEventsToo(t *testing.T) {
	before := base()
	before.Disk, before.Replicas[1] = "is full", Replica{Damage: "x"}
	n2 := before.Nodes["n2"]
	n2.Draining, n2.State = true, Dead
	before.Nodes["n2"] = n2
	after := base()
	after.At = at(105)
	n2 = after.Nodes["n2"]
	n2.Since = at(104)
	after.Nodes["n2"] = n2
	require.Equal(t, "104 node_started n2 (1.0)\n105 node_undrained n2\n105 replica_recovered n1 p1\n105 disk_sufficient n1\n", lines(changesBetween(before, after)))
}

func TestMergeKeepsOneReportOfAChange(t *testing.T) {
	one := func(s int, kind Kind, node string) Event {
		return Event{At: at(s), Kind: kind, Node: node, Partition: NoPartition}
	}
	elected := func(s, p int, node string) Event {
		return Event{At: at(s), Kind: LeaderElected, Node: node, Partition: p}
	}
	n1 := []Event{one(10, NodeDied, "n3"), elected(11, 0, "n1"), one(60, NodeStarted, "n3"), one(200, NodeDied, "n3")}
	n2 := []Event{one(12, NodeDied, "n3"), elected(11, 1, "n2"), elected(13, 0, "n1"), one(61, NodeStarted, "n3"), one(61, NodeDraining, "n2")}
	require.Equal(t, "200 node_died n3\n61 node_draining n2\n60 node_started n3\n13 leader_elected n1 p0\n11 leader_elected n2 p1\n11 leader_elected n1 p0\n10 node_died n3\n",
		lines(Merge([][]Event{n1, n2}, 100)))
	require.Equal(t, "200 node_died n3\n61 node_draining n2\n", lines(Merge([][]Event{n2, n1}, 2)), "the latest")
	require.Empty(t, Merge(nil, 10))
}

func TestLogKeepsTheLatestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term, began := uint64(0), time.Now()
		l := New(func() *View {
			if term++; term == 1 {
				return nil // not part of a cluster yet
			}
			v := base()
			v.At, v.Replicas[0] = time.Now(), Replica{Leading: true, Term: term}
			v.Nodes = map[string]Node{"n1": {State: Alive, Started: began}}
			v.Disk = strings.Repeat("x", int(term)*1000)
			return v
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		time.Sleep(3*time.Second + time.Millisecond)
		require.Equal(t, []Kind{NodeStarted, LeaderElected, DiskShort, LeaderElected, LeaderElected}, kinds(l.Events()))
		time.Sleep(2 * Capacity * time.Second)
		events := l.Events()
		require.Len(t, events, Capacity)
		require.Equal(t, fmt.Sprintf("term %d", term), events[Capacity-1].Detail)
		stop()
		require.NoError(t, <-done)
	})
}

func TestDetailsAreBounded(t *testing.T) {
	l := New(nil)
	l.add([]Event{{Detail: strings.Repeat("x", 5000)}})
	require.Len(t, l.Events()[0].Detail, maxDetail)
}

func kinds(events []Event) []Kind {
	var list []Kind
	for _, e := range events {
		list = append(list, e.Kind)
	}
	return list
}
