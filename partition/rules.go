package partition

import (
	"context"
	"sync"
	"time"

	"platform/flowcontrol"
	"platform/internal/broadcast"
)

// RuleSource provides the rule book of flow control; *metadata.Store implements it.
type RuleSource interface {
	// Rules returns the immutable rule book, and a channel that is closed when there is a
	// newer one.
	Rules() (*flowcontrol.Book, <-chan struct{})
}

// ruleSyncer updates the partition's rule book while the leadership lasts: to the book at
// its start, then to each newer one.
type ruleSyncer struct {
	source RuleSource
	// known returns the version of the partition's book.
	known func() (uint32, error)
	// propose proposes a book. It may fail although the partition has accepted the book.
	propose func(context.Context, *flowcontrol.Book) error

	mu      sync.Mutex        // covers version
	version uint32            // the partition has at least this one
	newer   broadcast.Channel // changes of version
}

func newRuleSyncer(source RuleSource, known func() (uint32, error), propose func(context.Context, *flowcontrol.Book) error) *ruleSyncer {
	return &ruleSyncer{source: source, known: known, propose: propose}
}

// maxRulesPause is the longest delay before a rejected book is proposed again.
const maxRulesPause = time.Second

// Run returns when ctx ends, or if the tables cannot be read.
func (s *ruleSyncer) Run(ctx context.Context) error {
	retry := overloadPause
	for {
		book, changed := s.source.Rules()
		known, err := s.known()
		if err != nil {
			return err
		}
		if known < book.Version {
			if s.propose(ctx, book.Effective()) != nil {
				if !pause(ctx, retry) {
					return nil
				}
				retry = min(2*retry, maxRulesPause)
				continue // the version in the tables shows whether it was applied
			}
			retry = overloadPause
			known = book.Version
		}
		s.setVersion(known)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *ruleSyncer) setVersion(version uint32) {
	s.mu.Lock()
	s.version = max(s.version, version)
	s.mu.Unlock()
	s.newer.Send()
}

// await returns once the partition has that version of the book or a newer one, or when one
// of the contexts ends.
func (s *ruleSyncer) await(ctx, leadership context.Context, version uint32) {
	for {
		newer := s.newer.Next()
		s.mu.Lock()
		reached := s.version >= version
		s.mu.Unlock()
		if reached {
			return
		}
		select {
		case <-newer:
		case <-leadership.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// AwaitRules returns once the partition has that version of the rule book or a newer one,
// and immediately if this replica does not lead.
func (p *Partition) AwaitRules(ctx context.Context, version uint32) {
	if l := p.role.leadership(); l != nil && l.rules != nil {
		l.rules.await(ctx, l.ctx, version)
	}
}
