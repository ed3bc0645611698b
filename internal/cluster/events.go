package cluster

import (
	"context"
	"time"

	"platform/internal/cluster/membership"
	"platform/internal/eventlog"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// eventsTimeout bounds a request for the events of a node.
const eventsTimeout = 3 * time.Second

// Events returns the changes of the cluster that this node has observed.
func (s *Server) Events(_ context.Context, req *nodepb.EventsRequest) (*nodepb.EventsResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.EventsResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	resp := &nodepb.EventsResponse{}
	for _, e := range s.events.Events() {
		event := &nodepb.ClusterEvent{At: e.At.UnixMilli(), Kind: string(e.Kind), Node: e.Node, Detail: e.Detail}
		if e.Partition != eventlog.NoPartition {
			id := uint32(e.Partition)
			event.Partition = &id
		}
		resp.Events = append(resp.Events, event)
	}
	return resp, nil
}

func eventsFromProto(in *nodepb.EventsResponse) []eventlog.Event {
	list := make([]eventlog.Event, 0, len(in.Events))
	for _, e := range in.Events {
		event := eventlog.Event{At: time.UnixMilli(e.At), Kind: eventlog.Kind(e.Kind), Node: e.Node, Partition: eventlog.NoPartition, Detail: e.Detail}
		if e.Partition != nil {
			event.Partition = int(*e.Partition)
		}
		list = append(list, event)
	}
	return list
}

// RunEvents observes the cluster until ctx ends.
func (s *Server) RunEvents(ctx context.Context) error { return s.events.Run(ctx) }

// view is what this node sees of the cluster, nil until it is part of one.
func (s *Server) view() *eventlog.View {
	store := s.store.Load()
	if store == nil {
		return nil
	}
	cluster, known := store.Cluster()
	if !known {
		return nil
	}
	v := &eventlog.View{
		At: time.Now(), Self: s.self.Node, Nodes: map[string]eventlog.Node{}, Replicas: map[uint32]eventlog.Replica{},
		LeadsMetadata: store.Group().IsLeader(), Disk: s.cfg.Disk(), Level: uint32(cluster.Level()),
	}
	members := map[string]membership.Member{}
	for _, m := range s.cfg.Members().Nodes() {
		members[m.Name+"/"+m.Incarnation] = m
	}
	for _, n := range store.Nodes() {
		m := members[string(n.ServerID())]
		v.Nodes[n.Name] = eventlog.Node{State: stateOf(m.State), Since: m.Since, Started: m.Started, Version: m.Version, Draining: n.Draining}
	}
	replicas := s.replicas.Load()
	for id := range s.partitions() {
		if reason := replicas.Quarantine(id); reason != "" {
			v.Replicas[id] = eventlog.Replica{Damage: reason}
		} else if p := replicas.Replica(id); p != nil {
			st := p.Status()
			v.Replicas[id] = eventlog.Replica{Leading: st.Leading, Term: st.Term}
		}
	}
	return v
}

func stateOf(s membership.State) eventlog.State {
	switch s {
	case membership.Alive:
		return eventlog.Alive
	case membership.Dead:
		return eventlog.Dead
	case membership.Left:
		return eventlog.Left
	}
	return eventlog.Unknown
}

// NodeEvents are the events that one node has observed, or the reason why they are not known.
type NodeEvents struct {
	Node   metadata.Node
	Events []eventlog.Event
	Err    error
}

// Events requests the events of all nodes, including this one.
func (n *Nodes) Events(ctx context.Context) []NodeEvents {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	layout, _ := n.server.Metadata().Layout()
	return fromEach(layout.Nodes, func(node metadata.Node) NodeEvents {
		events, err := n.eventsOf(ctx, node)
		return NodeEvents{Node: node, Events: events, Err: err}
	})
}

func (n *Nodes) eventsOf(ctx context.Context, node metadata.Node) ([]eventlog.Event, error) {
	if n.isSelf(node) {
		return n.server.events.Events(), nil
	}
	resp, err := send(ctx, n, node, nodepb.NodeClusterClient.Events, &nodepb.EventsRequest{ClusterId: n.server.ClusterID()})
	if err := responseError(resp, err); err != nil {
		return nil, err
	}
	return eventsFromProto(resp), nil
}
