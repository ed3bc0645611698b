package load

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/history"
)

func TestGapIsTheLongestTimeWithoutAnAnswer(t *testing.T) {
	begin := time.Now()
	at := func(seconds ...int) (all []time.Time) {
		for _, s := range seconds {
			all = append(all, begin.Add(time.Duration(s)*time.Second))
		}
		return all
	}
	for _, c := range []struct {
		name string
		acks []time.Time
		want time.Duration
	}{
		{"never answered", nil, 10 * time.Second},
		{"between answers", at(1, 2, 7, 9), 5 * time.Second},
		{"before the first", at(6, 7, 9), 6 * time.Second},
		{"after the last", at(1, 2, 3), 7 * time.Second},
		{"answered after the end", at(1, 12), 11 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, gap(begin, c.acks, begin.Add(10*time.Second)))
		})
	}
}

// Whether a request may fail depends on what happened to its node meanwhile.
func TestOnlyTroubleExcusesAFailure(t *testing.T) {
	for _, c := range []struct {
		name           string
		before, during func(*Nodes)
		excused        bool
	}{
		{name: "all is well"},
		{name: "trouble elsewhere", before: func(n *Nodes) { n.Trouble(1) }},
		{name: "trouble before that is over", before: func(n *Nodes) { n.Trouble(0); n.Well(0) }},
		{name: "trouble", before: func(n *Nodes) { n.Trouble(0) }, excused: true},
		{name: "trouble begins meanwhile", during: func(n *Nodes) { n.Trouble(0) }, excused: true},
		{name: "trouble comes and goes meanwhile", during: func(n *Nodes) { n.Trouble(0); n.Well(0) }, excused: true},
		{name: "an outage ends meanwhile", before: func(n *Nodes) { n.Outage(true) }, during: func(n *Nodes) { n.Outage(false) }, excused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := NewNodes(make([]*harness.Client, 2))
			if c.before != nil {
				c.before(n)
			}
			v := n.visit(0)
			if c.during != nil {
				c.during(n)
			}
			var counts tally
			counts.add(v, "call", errors.New("reset"))
			require.Equal(t, c.excused, counts.excused == 1)
			require.Equal(t, !c.excused, len(counts.failures) == 1)
		})
	}
}

func TestRoamingClientsLeaveANodeInTrouble(t *testing.T) {
	hanging := make(chan struct{})
	var servers [2]*httptest.Server
	clients := make([]*harness.Client, 2)
	for i := range servers {
		servers[i] = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if i == 0 {
				hanging <- struct{}{}
				<-r.Context().Done()
			}
		}))
		defer servers[i].Close()
		clients[i] = harness.NewClient(servers[i].URL, "platform")
	}
	n := NewNodes(clients)
	n.Trouble(1) // so that the first try goes to the one that hangs
	c := &client{nodes: n, tally: &tally{}, home: roaming, patience: time.Minute}
	go func() {
		<-hanging
		n.Well(1)
		n.Trouble(0)
		n.Abandon(0)
	}()
	_, err := c.insist(t.Context(), "call", call("Counter/k/add", nil, "key"))
	require.NoError(t, err)
	require.Equal(t, 1, c.tally.excused)
	require.Empty(t, c.tally.failures)
}

func TestARequestThatWasNotSentHasNoEffect(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	base := server.URL
	server.Close()
	c := &client{nodes: NewNodes([]*harness.Client{harness.NewClient(base, "platform")}), tally: &tally{}, home: roaming}
	for _, trouble := range []bool{true, false} {
		if trouble {
			c.nodes.Trouble(0)
		} else {
			c.nodes.Well(0)
		}
		_, err := c.once(context.Background(), "call", call("Counter/k/add", nil, ""))
		require.ErrorIs(t, err, errNotSent)
		require.Equal(t, history.Failed, outcome(err))
		require.Equal(t, !trouble, len(c.tally.failures) == 1, "only a node that should be there must not refuse")
	}
}

// A failure at a node that nothing was done to is one, whatever happens to others.
func TestOnlyNodesInTroubleAreExcused(t *testing.T) {
	nodes := NewNodes(make([]*harness.Client, 2))
	at := nodes.visit(1)
	nodes.Trouble(0)
	for i := range 2 {
		nodes.Well(i) // as after each fault
	}
	require.False(t, at.excused())
	require.NoError(t, at.ctx.Err(), "its requests are not given up")
}
