package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"platform/internal/subscription"
	nodepb "platform/proto/node"
)

// DeadLetters implements admin.Streams.
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

// DeadLetter implements admin.Streams.
func (s *Streams) DeadLetter(ctx context.Context, id subscription.RecordID) (subscription.DeadLetter, error) {
	failed := subscription.ErrNotRead
	for _, node := range s.Nodes.All() {
		letter, err := s.Nodes.DeadLetter(ctx, node, id)
		if err == nil {
			return letter, nil
		}
		failed = moreSpecific(failed, err)
	}
	return subscription.DeadLetter{}, failed
}

// RetryDeadLetter implements admin.Streams.
func (s *Streams) RetryDeadLetter(ctx context.Context, id subscription.RecordID) error {
	return s.onDeadLetter(ctx, id, nodepb.StreamRecordAction_RETRY_DEAD_LETTER)
}

// DropDeadLetter implements admin.Streams.
func (s *Streams) DropDeadLetter(ctx context.Context, id subscription.RecordID) error {
	return s.onDeadLetter(ctx, id, nodepb.StreamRecordAction_DROP_DEAD_LETTER)
}

// onDeadLetter finds the node that stores a dead letter as the leader.
func (s *Streams) onDeadLetter(ctx context.Context, id subscription.RecordID, action nodepb.StreamRecordAction) error {
	failed := subscription.ErrNotRead
	for _, node := range s.Nodes.All() {
		_, err := s.Nodes.StreamRecord(ctx, node, id, action)
		if err == nil {
			return nil
		}
		failed = moreSpecific(failed, err)
	}
	return failed
}

// moreSpecific returns the error of the node that leads the partition, which is not ErrNotRead.
func moreSpecific(a, b error) error {
	if errors.Is(b, subscription.ErrNotRead) || !errors.Is(a, subscription.ErrNotRead) {
		return a
	}
	return b
}
