package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
)

// restart stops all nodes and starts them with the settings of flow control on or off.
// Those that declined have ended already.
func (c *testCluster) restart(flow bool) {
	for i, m := range c.nodes {
		if m.cancel != nil {
			c.stop(i)
		}
		m.cfg.EnableVQueues, m.cfg.EnableProtocolV7 = flow, flow
	}
	for i := range c.nodes {
		c.start(i)
	}
}

// declined waits until a node has refused to start because of flow control, then for the end of all
// others, and returns the first error.
func (c *testCluster) declined() (first error) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for _, m := range c.nodes {
			select {
			case first = <-m.done:
				m.cancel()
				m.cancel = nil
				return true
			default:
			}
		}
		return false
	}, waitTimeout, 10*time.Millisecond, "no partition declines")
	for _, m := range c.nodes {
		if m.cancel == nil {
			continue
		}
		m.cancel()
		m.cancel = nil
		select {
		case err := <-m.done: // it may have refused as well
			if err != nil {
				require.ErrorIs(c.t, err, partition.ErrHoldsData)
			}
		case <-time.After(waitTimeout):
			require.FailNow(c.t, "node does not stop")
		}
	}
	return first
}

// scheduled sends calls that start in an hour until there is one in another partition
// than those given, and returns its id and partition.
func (c *testCluster) scheduled(others ...uint32) (id string, at uint32) {
	c.t.Helper()
	for key := range 1000 {
		if at = machine.PartitionOf(ids.HashKey(fmt.Sprint(key)), 4); !slices.Contains(others, at) {
			code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/send/Counter/%d/add?delay=1h", key), "1")
			require.Equal(c.t, http.StatusAccepted, code, body)
			var sent struct{ InvocationID string }
			require.NoError(c.t, json.Unmarshal([]byte(body), &sent))
			return sent.InvocationID, at
		}
	}
	require.FailNow(c.t, "no key is in another partition")
	return "", 0
}

func (c *testCluster) kill(id string) {
	c.t.Helper()
	code, body := c.do(0, true, "PATCH", "/invocations/"+id+"/kill", "")
	require.Less(c.t, code, 300, body)
}

// called calls an object of each partition.
func (c *testCluster) called() {
	c.t.Helper()
	for key := range 8 {
		code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/call/Counter/c%d/add", key), "1")
		require.Equal(c.t, http.StatusOK, code, body)
	}
}

// scoped is the status of a scoped call.
func (c *testCluster) scoped() int {
	code, _ := c.do(0, false, "POST", "/platform/scope/s/call/Counter/a/add", "1")
	return code
}

func testFlowControlIsDeclinedAndEnabledLater(t *testing.T, nodes int) {
	c := newTestCluster(t, nodes)
	all := slices.Collect(func(yield func(int) bool) {
		for i := range nodes {
			if !yield(i) {
				return
			}
		}
	})
	c.healthy(nodes, all...)
	c.counter(0)
	first, holder := c.scheduled()

	c.restart(true)
	err := c.declined()
	require.ErrorIs(t, err, partition.ErrHoldsData)
	require.ErrorContains(t, err, fmt.Sprintf("partition %d holds 1, such as %s of Counter/", holder, first))

	c.restart(false)
	c.healthy(nodes, all...)
	c.called()
	require.Equal(t, http.StatusBadRequest, c.scoped(), "as before")
	c.kill(first)
	second, other := c.scheduled(holder)
	c.called()

	c.restart(true) // the other partition was found empty the first time
	require.ErrorContains(t, c.declined(), fmt.Sprintf("partition %d holds 1, such as %s", other, second))

	c.restart(false)
	c.healthy(nodes, all...)
	c.kill(second)

	c.restart(true)
	c.healthy(nodes, all...)
	require.Equal(t, http.StatusOK, c.scoped())
	c.scheduled()
	require.Eventually(t, func() bool {
		_, config := c.do(0, true, "GET", "/cluster/config", "")
		return strings.Contains(config, `"flow_control":true`)
	}, waitTimeout, 50*time.Millisecond)

	c.restart(false)
	c.healthy(nodes, all...)
	c.called()
	c.restart(true) // is not enabled again
	c.healthy(nodes, all...)
	require.Equal(t, http.StatusOK, c.scoped())
}

func TestFlowControlIsDeclinedAndEnabledLaterOnOneNode(t *testing.T) {
	testFlowControlIsDeclinedAndEnabledLater(t, 1)
}

func TestFlowControlIsDeclinedAndEnabledLaterOnThreeNodes(t *testing.T) {
	testFlowControlIsDeclinedAndEnabledLater(t, 3)
}
