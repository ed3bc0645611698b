package fabric

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

// waits reports whether a request may take as long as an invocation.
func waits(m node.PartitionMethod) bool {
	return m == node.PartitionMethod_PARTITION_METHOD_CALL || m == node.PartitionMethod_PARTITION_METHOD_AWAIT
}

// isolated is a request in memory of its own: one that waits for long must not hold
// on to the whole batch that it came with.
func isolated(req *node.PartitionRequest) *node.PartitionRequest {
	return &node.PartitionRequest{
		Partition: req.Partition, Method: req.Method, Command: bytes.Clone(req.Command), Id: bytes.Clone(req.Id),
	}
}

// answer asks this node's replica.
func (s *Server) answer(ctx context.Context, req *node.PartitionRequest) *node.PartitionResponse {
	p := s.local(req.Partition)
	if p == nil {
		return &node.PartitionResponse{Code: node.PartitionCode_PARTITION_CODE_NOT_LEADER}
	}
	if !p.Leading() {
		s.settle(ctx, p)
	}
	r := new(node.PartitionResponse)
	err := s.fill(ctx, p, req, r)
	if err == nil {
		return r
	}
	r = &node.PartitionResponse{Code: codeOf(err), Message: err.Error()}
	if r.Code == node.PartitionCode_PARTITION_CODE_NOT_LEADER {
		r.Leader = s.hint(p)
	}
	return r
}

// hint is who leads as far as this node knows; not itself, since it has refused.
func (s *Server) hint(p Local) *node.NodeReference {
	if l := p.Leader(); !s.self.owns(l.ID) {
		return leaderToWire(l)
	}
	return nil
}

// settle gives a replica that has just been elected the time to become ready, so that
// requests need not look for it elsewhere.
func (s *Server) settle(ctx context.Context, p Local) {
	t := time.NewTimer(settleTimeout)
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

// fill asks the replica and puts what it says into r.
func (s *Server) fill(ctx context.Context, p Local, req *node.PartitionRequest, r *node.PartitionResponse) error {
	switch req.Method {
	case node.PartitionMethod_PARTITION_METHOD_INVOKE, node.PartitionMethod_PARTITION_METHOD_CALL,
		node.PartitionMethod_PARTITION_METHOD_OPERATE, node.PartitionMethod_PARTITION_METHOD_DELIVER:
		return s.propose(ctx, p, req, r)
	case node.PartitionMethod_PARTITION_METHOD_STATE:
		o := machine.Object{Scope: req.Object.GetScope(), Service: req.Object.GetService(), Key: req.Object.GetKey()}
		entries, complete, err := p.State(ctx, o, int(req.Limit))
		r.State, r.Complete = stateToWire(entries), complete
		return err
	case node.PartitionMethod_PARTITION_METHOD_SCAN:
		return scan(ctx, p, req, r)
	}
	if len(req.Id) != len(ids.Invocation{}) {
		return fmt.Errorf("request with an id of %d bytes", len(req.Id))
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
		return inspected(r, rec, entries)
	}
	return fmt.Errorf("this version of the server does not know what %d asks for", req.Method)
}

func inspected(r *node.PartitionResponse, rec partition.Record, entries []journal.Entry) (err error) {
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
	case *machine.Deliver:
		return p.Deliver(ctx, c)
	case *machine.Signal, *machine.Kill, *machine.Pause, *machine.Resume, *machine.Purge, *machine.Restart, *machine.PauseQueue:
		o, err = p.Operate(ctx, c)
	default:
		return fmt.Errorf("%T is not for other nodes to propose", c)
	}
	r.Outcome = outcomeToWire(&o)
	return err
}

func call(ctx context.Context, p Local, c *machine.Invoke, r *node.PartitionResponse) error {
	e, o, err := p.Call(ctx, c)
	if err != nil {
		return err
	}
	if o.Result != nil { // is the ending's
		o.Result = nil
	}
	r.Ending, r.Outcome = endingToWire(&e), outcomeToWire(&o)
	return nil
}
