package query

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
)

// twoNodes is a cluster whose second node does not respond.
type twoNodes struct{}

func (twoNodes) State(context.Context) (*ClusterState, error) {
	return &ClusterState{
		Nodes: []Node{
			{ID: 1, Name: "a", Incarnation: "x", StartedAt: time.Unix(1795168807, 5), Metadata: 17, Storage: 2, Features: []string{"flow-control"}, Settings: []Setting{{"node-name", "a"}, {"secret", "***"}}},
			{ID: 2, Name: "b", Incarnation: "y"},
		},
		Partitions: []Partition{{ID: 0, Group: 100, Placed: []ids.Node{1, 2}, Leader: 1}},
		Replicas: []Replica{
			{Partition: 0, Group: 100, Node: 1, Role: "leader", Answers: true, Rules: 3, Applied: 5, Committed: 7, Last: 8, Snapshot: 2},
			{Partition: 0, Group: 100, Node: 2, Role: "voter"},
		},
	}, nil
}

func TestTablesOfTheCluster(t *testing.T) {
	e := newTestEngine(t, Config{Cluster: twoNodes{}})
	for query, want := range map[string][]string{
		"select plain_node_id || ' ' || gen_node_id || ' ' || node || ' ' || key || '=' || value as v from config order by 1": {"N1 N1:1795168807 a node-name=a", "N1 N1:1795168807 a secret=***"},
		"select name || ' ' || coalesce(nodes_configuration_version, 'unknown') as v from nodes order by 1":                   {"a 17", "b unknown"},
		"select concat_ws(' ', applied_rule_book_version, applied_schema_version, storage_version, enabled_features) as v from partition_state": {
			`3 17 2 ["flow-control"]`},
		"select concat_ws(' ', loglet_id, local_tail, global_tail, trim_point, is_sealed, num_pending) as v from loglet_workers":  {"a 8 7 2 0 1"},
		"select concat_ws(' ', plain_node_id, partition_id, read_pointer, safe_known_tail, state) as v from bifrost_read_streams": {"N1 0 6 7 reading"},
		"select concat_ws(' ', log_id, loglet_id, sequencer, base_lsn, tail_lsn) as v from logs_tail_segments":                    {"100 a a 3 8"},
		"select plain_node_id || ' ' || gen_node_id as v from nodes order by 1":                                                   {"N1 N1:1795168807", "N2 N2:0"},
		"select leader_plain_node_id || ' ' || leader_gen_node_id || ' ' || current_replica_set as v from partitions":             {`N1 N1:1795168807 ["N1","N2"]`},
		"select plain_node_id || ' ' || leader as v from partition_state where plain_node_id = 'N1'":                              {"N1 N1"},
		"select plain_node_id || ' ' || coalesce(alive_gen_node_id, '-') as v from partition_replica_set order by 1":              {"N1 N1:1795168807", "N2 -"},
		"select nodeset || '' as v from logs_tail_segments":                                                                       {`["N1","N2"]`},
		"select count(*) as v from partition_replica_set":                                                                         {"2"},
	} {
		var got []string
		for _, row := range ask(t, e, query) {
			got = append(got, toText(row["v"]))
		}
		require.Equal(t, want, got, query)
	}
}
