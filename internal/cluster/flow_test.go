package cluster

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	nodepb "platform/proto/node"
)

func TestFlowControlIsEnabledWhenAllPartitionsAreLedWithIt(t *testing.T) {
	node := func(flow bool, leads ...uint32) *nodepb.StatusResponse {
		st := &nodepb.StatusResponse{FlowControl: flow}
		for id := range uint32(3) {
			st.Replicas = append(st.Replicas, &nodepb.ReplicaStatus{Partition: id, Leading: slices.Contains(leads, id)})
		}
		return st
	}
	for name, test := range map[string]struct {
		nodes []*nodepb.StatusResponse
		want  bool
	}{
		"one node":                  {[]*nodepb.StatusResponse{node(true, 0, 1, 2)}, true},
		"three nodes":               {[]*nodepb.StatusResponse{node(true, 0), node(true, 1, 2), node(true)}, true},
		"a partition without":       {[]*nodepb.StatusResponse{node(true, 0), node(true, 2), node(true)}, false},
		"a leader without settings": {[]*nodepb.StatusResponse{node(true, 0, 1), node(false, 2)}, false},
		"any node without settings": {[]*nodepb.StatusResponse{node(true, 0, 1, 2), node(false)}, false},
		"two leaders of one":        {[]*nodepb.StatusResponse{node(true, 0, 1), node(true, 0, 1)}, false},
	} {
		nodes := Statuses{}
		for i, st := range test.nodes {
			nodes[uint32(i)] = st
		}
		require.Equal(t, test.want, haveFlow(nodes, 3), name)
	}
}
