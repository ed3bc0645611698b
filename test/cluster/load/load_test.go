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

func TestGapIsLongestTimeWithoutResponse(t *testing.T) {
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
		{"no response", nil, 10 * time.Second},
		{"between responses", at(1, 2, 7, 9), 5 * time.Second},
		{"before the first", at(6, 7, 9), 6 * time.Second},
		{"after the last", at(1, 2, 3), 7 * time.Second},
		{"response after the end", at(1, 12), 11 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, gap(begin, c.acks, begin.Add(10*time.Second)).Length)
		})
	}
}

func TestOnlyFaultyNodesMayFail(t *testing.T) {
	for _, c := range []struct {
		name           string
		before, during func(*Nodes)
		tolerated      bool
	}{
		{name: "healthy"},
		{name: "another node faulty", before: func(n *Nodes) { n.MarkFaulty(1) }},
		{name: "faulty before", before: func(n *Nodes) { n.MarkFaulty(0); n.MarkHealthy(0) }},
		{name: "faulty", before: func(n *Nodes) { n.MarkFaulty(0) }, tolerated: true},
		{name: "becomes faulty during the request", during: func(n *Nodes) { n.MarkFaulty(0) }, tolerated: true},
		{name: "faulty for a part of the request", during: func(n *Nodes) { n.MarkFaulty(0); n.MarkHealthy(0) }, tolerated: true},
		{name: "loss of quorum ends during the request", before: func(n *Nodes) { n.SetQuorumLost(true) }, during: func(n *Nodes) { n.SetQuorumLost(false) }, tolerated: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := NewNodes(make([]*harness.Client, 2))
			if c.before != nil {
				c.before(n)
			}
			at := n.pick(0)
			if c.during != nil {
				c.during(n)
			}
			var counts requestCounts
			counts.add(at, "call", errors.New("reset"))
			require.Equal(t, c.tolerated, counts.tolerated == 1)
			require.Equal(t, !c.tolerated, len(counts.failures) == 1)
		})
	}
}

func TestClientsAvoidFaultyNodes(t *testing.T) {
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
	n.MarkFaulty(1) // so that the first attempt goes to the hanging node
	c := &client{nodes: n, counts: &requestCounts{}, node: anyNode, retryTimeout: time.Minute}
	go func() {
		<-hanging
		n.MarkHealthy(1)
		n.MarkFaulty(0)
		n.CancelRequests(0)
	}()
	_, err := c.retry(t.Context(), "call", call("Counter/k/add", nil, "key"))
	require.NoError(t, err)
	require.Equal(t, 1, c.counts.tolerated)
	require.Empty(t, c.counts.failures)
}

func TestUnsentRequestHasNoEffect(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	base := server.URL
	server.Close()
	c := &client{nodes: NewNodes([]*harness.Client{harness.NewClient(base, "platform")}), counts: &requestCounts{}, node: anyNode}
	for _, trouble := range []bool{true, false} {
		if trouble {
			c.nodes.MarkFaulty(0)
		} else {
			c.nodes.MarkHealthy(0)
		}
		_, err := c.try(context.Background(), "call", call("Counter/k/add", nil, ""))
		require.ErrorIs(t, err, errNotSent)
		require.Equal(t, history.Failed, outcome(err))
		require.Equal(t, !trouble, len(c.counts.failures) == 1, "only a healthy node must not refuse connections")
	}
}

func TestHealthyNodeMustNotFail(t *testing.T) {
	nodes := NewNodes(make([]*harness.Client, 2))
	at := nodes.pick(1)
	nodes.MarkFaulty(0)
	for i := range 2 {
		nodes.MarkHealthy(i) // as after each fault
	}
	require.False(t, at.mayFail())
	require.NoError(t, at.ctx.Err(), "its requests are not canceled")
}
