package admin

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
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
	At        rest.Timestamp `json:"at"`
	Kind      eventlog.Kind  `json:"kind"`
	Node      string         `json:"node,omitempty"`
	Partition *int           `json:"partition,omitempty"`
	Detail    string         `json:"detail,omitempty"`
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
	f, err := s.readEventFilter(c)
	if err != nil {
		return err
	}
	view := clusterEventsView{Events: []clusterEventView{}, Complete: true, Nodes: []eventsNodeView{}}
	var lists [][]eventlog.Event
	for _, n := range s.cluster.Events(c.Request().Context()) {
		view.Nodes = append(view.Nodes, eventsNodeView{n.ID, n.Name, n.Reason})
		view.Complete = view.Complete && n.Reason == ""
		for _, e := range n.Events { // of nodes that were removed
			delete(f.unknown, e.Node)
		}
		lists = append(lists, slices.DeleteFunc(slices.Clone(n.Events), func(e eventlog.Event) bool { return !f.matches(e) }))
	}
	if len(f.unknown) > 0 {
		return f.unknown[slices.Sorted(maps.Keys(f.unknown))[0]]
	}
	for _, e := range eventlog.Merge(lists, f.limit) {
		event := clusterEventView{At: rest.TimestampOf(e.At), Kind: e.Kind, Node: e.Node, Detail: e.Detail}
		if e.Partition != eventlog.NoPartition {
			event.Partition = &e.Partition
		}
		view.Events = append(view.Events, event)
	}
	return rest.Respond(c, http.StatusOK, view)
}

// eventFilter selects events of the cluster.
type eventFilter struct {
	limit     int
	nodes     []string         // none: all
	unknown   map[string]error // requested nodes that are not members; they may have events
	partition int              // eventlog.NoPartition: all
}

// readEventFilter reads the filter from the query parameters.
func (s *Server) readEventFilter(c echo.Context) (f eventFilter, err error) {
	f = eventFilter{limit: defaultClusterEvents, unknown: map[string]error{}, partition: eventlog.NoPartition}
	if text := c.QueryParam("limit"); text != "" {
		if f.limit, err = strconv.Atoi(text); err != nil || f.limit < 1 || f.limit > maxClusterEvents {
			return f, rest.BadRequest("The query parameter 'limit' is invalid: %q is not a number from 1 to %d", text, maxClusterEvents)
		}
	}
	if f.nodes, err = parsed(c.QueryParams()["node"], anyText); err != nil {
		return f, err
	}
	for i, text := range f.nodes {
		if member, err := s.member(text); err == nil {
			f.nodes[i] = member.Name
		} else {
			f.unknown[text] = err
		}
	}
	if text := c.QueryParam("partition"); text != "" {
		if f.partition, err = strconv.Atoi(text); err != nil || f.partition < 0 {
			return f, rest.BadRequest("The query parameter 'partition' is invalid: %q is not the id of a partition", text)
		}
	}
	return f, nil
}

func (f *eventFilter) matches(e eventlog.Event) bool {
	return (len(f.nodes) == 0 || slices.Contains(f.nodes, e.Node)) && (f.partition == eventlog.NoPartition || e.Partition == f.partition)
}
