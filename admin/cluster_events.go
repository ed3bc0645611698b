package admin

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"platform/internal/eventlog"
	"platform/internal/feature"
	"platform/internal/ids"
)

// Limits of GET /cluster/events.
const (
	defaultClusterEvents = 200
	maxClusterEvents     = 1000
)

// NodeEvents are the changes of the cluster that one node has observed.
type NodeEvents struct {
	ID     ids.Node
	Name   string
	Events []eventlog.Event
	Reason string // why there are none; empty if there are
}

type clusterEventsView struct {
	Events   []clusterEventView `json:"events"`
	Complete bool               `json:"complete"`
	Nodes    []eventsNodeView   `json:"nodes"`
}

type clusterEventView struct {
	At        Timestamp     `json:"at"`
	Kind      eventlog.Kind `json:"kind"`
	Node      string        `json:"node,omitempty"`
	Partition *int          `json:"partition,omitempty"`
	Detail    string        `json:"detail,omitempty"`
}

type eventsNodeView struct {
	ID     ids.Node `json:"id"`
	Name   string   `json:"name"`
	Reason string   `json:"reason,omitempty"`
}

func (s *Server) listClusterEvents(c echo.Context) error {
	cluster, _ := s.registry.Cluster()
	if err := feature.Require(cluster.Level(), feature.Level4, "showing events of the cluster"); err != nil {
		return err
	}
	limit := defaultClusterEvents
	if text := c.QueryParam("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxClusterEvents {
			return badRequest("The query parameter 'limit' is invalid: %q is not a number from 1 to %d", text, maxClusterEvents)
		}
		limit = n
	}
	nodes, err := parsed(c.QueryParams()["node"], anyText)
	if err != nil {
		return err
	}
	unknown := map[string]error{} // nodes that are not members, and have no events
	for i, text := range nodes {
		if member, err := s.member(text); err == nil {
			nodes[i] = member.Name
		} else {
			unknown[text] = err
		}
	}
	partition := eventlog.NoPartition
	if text := c.QueryParam("partition"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return badRequest("The query parameter 'partition' is invalid: %q is not the id of a partition", text)
		}
		partition = n
	}
	view := clusterEventsView{Events: []clusterEventView{}, Complete: true, Nodes: []eventsNodeView{}}
	var lists [][]eventlog.Event
	for _, n := range s.cluster.Events(c.Request().Context()) {
		view.Nodes = append(view.Nodes, eventsNodeView{n.ID, n.Name, n.Reason})
		view.Complete = view.Complete && n.Reason == ""
		for _, e := range n.Events { // of nodes that were removed
			delete(unknown, e.Node)
		}
		lists = append(lists, slices.DeleteFunc(slices.Clone(n.Events), func(e eventlog.Event) bool {
			return len(nodes) > 0 && !slices.Contains(nodes, e.Node) || partition != eventlog.NoPartition && e.Partition != partition
		}))
	}
	if len(unknown) > 0 {
		return unknown[sortedKeys(unknown)[0]]
	}
	for _, e := range eventlog.Merge(lists, limit) {
		event := clusterEventView{At: timestamp(e.At), Kind: e.Kind, Node: e.Node, Detail: e.Detail}
		if e.Partition != eventlog.NoPartition {
			event.Partition = &e.Partition
		}
		view.Events = append(view.Events, event)
	}
	return respond(c, http.StatusOK, view)
}
