package fabric

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"platform/internal/ids"
	"platform/internal/nodelink"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

// isProposal reports whether a request proposes a command. One of a newer release, which this node relays, may: without
// a response its outcome is unknown.
func isProposal(m node.PartitionMethod) bool {
	return m < node.PartitionMethod_PARTITION_METHOD_AWAIT || m > node.PartitionMethod_PARTITION_METHOD_LIST
}

// isLongRunning reports whether a request may take as long as an invocation.
func isLongRunning(m node.PartitionMethod) bool {
	return m == node.PartitionMethod_PARTITION_METHOD_CALL || m == node.PartitionMethod_PARTITION_METHOD_AWAIT
}

// cloneRequest copies a request out of the buffer of its batch, so that a long-running
// request does not keep the whole batch in memory.
func cloneRequest(req *node.PartitionRequest) *node.PartitionRequest {
	return &node.PartitionRequest{
		Partition: req.Partition, Method: req.Method, Command: bytes.Clone(req.Command), Id: bytes.Clone(req.Id), Relay: req.Relay,
	}
}

// serveRequest executes a request of a node on this node's replica, or relays it.
func (s *Server) serveRequest(ctx context.Context, from *nodelink.Peer, req *node.PartitionRequest) *node.PartitionResponse {
	p := s.local(req.Partition)
	if p == nil {
		return &node.PartitionResponse{Code: node.PartitionCode_PARTITION_CODE_NOT_LEADER}
	}
	if !p.Leading() {
		s.awaitReady(ctx, p)
	}
	if req.Relay && !p.Leading() {
		if r := s.relay(ctx, from, p, req); r != nil {
			return r
		}
	}
	r := new(node.PartitionResponse)
	err := s.dispatch(ctx, p, req, r)
	if err == nil {
		return r
	}
	r = &node.PartitionResponse{Code: codeOf(err), Message: err.Error()}
	if r.Code == node.PartitionCode_PARTITION_CODE_NOT_LEADER {
		r.Leader = s.leaderHint(p)
	}
	return r
}

// leaderHint returns the leader as known by this node, nil if unknown or this node itself,
// which has rejected the request.
func (s *Server) leaderHint(p Local) *node.NodeReference {
	if l := p.Leader(); !s.self.owns(l.ID) {
		return leaderToWire(l)
	}
	return nil
}

// awaitReady waits up to readyTimeout for a replica that has just been elected to become
// ready, so that the client need not look for another leader.
func (s *Server) awaitReady(ctx context.Context, p Local) {
	t := time.NewTimer(readyTimeout)
	defer t.Stop()
	for {
		changed := p.Changed()
		if p.Leading() || !s.self.owns(p.Leader().ID) {
			return
		}
		select {
		case <-changed:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// dispatch executes a request on the replica and stores its result in r.
func (s *Server) dispatch(ctx context.Context, p Local, req *node.PartitionRequest, r *node.PartitionResponse) error {
	switch req.Method {
	case node.PartitionMethod_PARTITION_METHOD_INVOKE, node.PartitionMethod_PARTITION_METHOD_CALL,
		node.PartitionMethod_PARTITION_METHOD_OPERATE, node.PartitionMethod_PARTITION_METHOD_DELIVER,
		node.PartitionMethod_PARTITION_METHOD_INGEST:
		return s.propose(ctx, p, req, r)
	case node.PartitionMethod_PARTITION_METHOD_STATE:
		o := machine.Object{Scope: req.Object.GetScope(), Service: req.Object.GetService(), Key: req.Object.GetKey()}
		entries, complete, err := p.State(ctx, o, int(req.Limit))
		r.State, r.Complete = stateToWire(entries), complete
		return err
	case node.PartitionMethod_PARTITION_METHOD_SCAN:
		return scan(ctx, p, req, r)
	case node.PartitionMethod_PARTITION_METHOD_LIST:
		return list(ctx, p, req, r)
	}
	if len(req.Id) != len(ids.Invocation{}) {
		return fmt.Errorf("malformed request: id has %d bytes", len(req.Id))
	}
	return s.read(ctx, p, req, ids.Invocation(req.Id), r)
}

func (s *Server) read(ctx context.Context, p Local, req *node.PartitionRequest, id ids.Invocation, r *node.PartitionResponse) error {
	switch req.Method {
	case node.PartitionMethod_PARTITION_METHOD_AWAIT:
		e, err := p.Await(ctx, id)
		r.Ending = endingToWire(&e)
		return err
	case node.PartitionMethod_PARTITION_METHOD_FIND:
		inv, err := p.Find(ctx, id)
		if err == nil {
			r.Record = &node.PartitionRecord{Invocation: codec.AppendInvocation(nil, inv)}
		}
		return err
	case node.PartitionMethod_PARTITION_METHOD_INSPECT:
		rec, entries, err := p.Inspect(ctx, id, req.Journal)
		if err != nil {
			return err
		}
		return writeInspection(r, rec, entries)
	}
	return fmt.Errorf("unknown request method %d; upgrade the server on this node", req.Method)
}

func writeInspection(r *node.PartitionResponse, rec partition.Record, entries []journal.Entry) (err error) {
	r.Entries = entriesToWire(entries)
	r.Record, err = recordToWire(rec)
	return err
}

func (s *Server) propose(ctx context.Context, p Local, req *node.PartitionRequest, r *node.PartitionResponse) error {
	c, err := codec.DecodeCommand(req.Command)
	if err != nil {
		return err
	}
	var o machine.Outcome
	switch c := c.(type) {
	case *machine.Invoke:
		if req.Method == node.PartitionMethod_PARTITION_METHOD_CALL {
			return call(ctx, p, c, r)
		}
		o, err = p.Invoke(ctx, c)
		setMoment(p, r)
	case *machine.Deliver:
		return p.Deliver(ctx, c)
	case *machine.Ingest:
		o, err = p.Ingest(ctx, c)
	case machine.Operation:
		o, err = p.Operate(ctx, c)
	default:
		return fmt.Errorf("other nodes may not propose %T", c)
	}
	r.Outcome = outcomeToWire(&o)
	return err
}

func call(ctx context.Context, p Local, c *machine.Invoke, r *node.PartitionResponse) error {
	e, o, err := p.Call(ctx, c)
	if err != nil {
		return err
	}
	if o.Result != nil { // already part of the ending
		o.Result = nil
	}
	r.Ending, r.Outcome = endingToWire(&e), outcomeToWire(&o)
	setMoment(p, r)
	return nil
}

// setMoment adds the moment of the leader to a response.
func setMoment(p Local, r *node.PartitionResponse) {
	m := p.Moment()
	r.Leadership, r.Moment = m.Leadership, m.Number
}
