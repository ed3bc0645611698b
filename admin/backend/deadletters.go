package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"platform/internal/subscription"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// DeadLetters implements subscriptions.Streams.
func (s *Streams) DeadLetters(ctx context.Context, id string, after *subscription.RecordID, limit int) (letters []subscription.DeadLetter, silent []string) {
	nodes := s.Nodes.All()
	found := make([]subscription.DeadLetterPage, len(nodes))
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() { found[i], errs[i] = s.Nodes.DeadLetters(ctx, node, id, after, limit) })
	}
	wg.Wait()
	read := map[uint32]bool{}
	for i, node := range nodes {
		if errs[i] != nil {
			silent = append(silent, node.Name+": "+errs[i].Error())
		}
		letters = append(letters, found[i].Letters...)
		for _, partition := range found[i].Partitions {
			read[partition] = true
		}
	}
	if silent == nil { // otherwise, what the nodes lead is missing
		for _, p := range s.Nodes.Partitions() {
			if !read[p.ID] {
				silent = append(silent, fmt.Sprintf("partition %d: no node leads it at the moment", p.ID))
			}
		}
	}
	subscription.SortDeadLetters(letters)
	letters = slices.CompactFunc(letters, func(a, b subscription.DeadLetter) bool { // a leader that was deposed does not know it yet
		return a.Topic == b.Topic && a.Partition == b.Partition && a.Offset == b.Offset
	})
	return letters[:min(limit, len(letters))], silent
}

// DeadLetter implements subscriptions.Streams.
func (s *Streams) DeadLetter(ctx context.Context, id subscription.RecordID) (subscription.DeadLetter, error) {
	return onLeader(ctx, s.Nodes.All(), func(ctx context.Context, node metadata.Node) (subscription.DeadLetter, error) {
		return s.Nodes.DeadLetter(ctx, node, id)
	})
}

// RetryDeadLetter implements subscriptions.Streams.
func (s *Streams) RetryDeadLetter(ctx context.Context, id subscription.RecordID) error {
	return s.changeDeadLetter(ctx, id, nodepb.StreamRecordAction_RETRY_DEAD_LETTER)
}

// DropDeadLetter implements subscriptions.Streams.
func (s *Streams) DropDeadLetter(ctx context.Context, id subscription.RecordID) error {
	return s.changeDeadLetter(ctx, id, nodepb.StreamRecordAction_DROP_DEAD_LETTER)
}

func (s *Streams) changeDeadLetter(ctx context.Context, id subscription.RecordID, action nodepb.StreamRecordAction) error {
	_, err := onLeader(ctx, s.Nodes.All(), func(ctx context.Context, node metadata.Node) (subscription.Record, error) {
		return s.Nodes.StreamRecord(ctx, node, id, action)
	})
	return err
}

// onLeader sends a request about a record to all nodes. One of them, which leads the partition that
// stores it, executes the request, and the result of that one does not wait for silent nodes. If none
// does, it returns the most specific error: that of a leader is not ErrNotRead.
func onLeader[R any](ctx context.Context, nodes []metadata.Node, send func(context.Context, metadata.Node) (R, error)) (R, error) {
	type response struct {
		node   int
		result R
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	responses := make(chan response, len(nodes))
	for i, node := range nodes {
		wg.Go(func() {
			result, err := send(ctx, node)
			responses <- response{i, result, err}
		})
	}
	errs := make([]error, len(nodes))
	for range nodes {
		r := <-responses
		if r.err == nil || errors.Is(r.err, subscription.ErrNoDeadLetter) || errors.Is(r.err, subscription.ErrUndeliverable) {
			return r.result, r.err
		}
		errs[r.node] = r.err
	}
	for _, err := range errs {
		if !errors.Is(err, subscription.ErrNotRead) {
			return *new(R), err
		}
	}
	return *new(R), subscription.ErrNotRead
}
