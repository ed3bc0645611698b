package partition

import (
	"context"
	"sync"

	"platform/flowcontrol"
)

// RuleSource is where the rule book of flow control comes from; *metadata.Store is
// one.
type RuleSource interface {
	// Rules is the rule book, which never changes, and a channel that is closed as soon
	// as there is another one.
	Rules() (*flowcontrol.Book, <-chan struct{})
}

// ruleKeeper gives a partition the rule book, as long as its leadership lasts: the book
// that there is when it begins, then each newer one.
type ruleKeeper struct {
	source RuleSource
	// known is the version of the book that the partition has.
	known func() (uint32, error)
	// propose gives the partition a book. It may fail though the partition took it.
	propose func(context.Context, *flowcontrol.Book) error

	mu      sync.Mutex // covers version
	version uint32     // the partition has at least this one
	newer   *notice    // of version
}

func newRuleKeeper(source RuleSource) *ruleKeeper {
	return &ruleKeeper{source: source, newer: newNotice()}
}

// Run returns when ctx ends, or when the tables cannot be read.
func (k *ruleKeeper) Run(ctx context.Context) error {
	for {
		book, changed := k.source.Rules()
		known, err := k.known()
		if err != nil {
			return err
		}
		if known < book.Version {
			if k.propose(ctx, book.InForce()) != nil {
				if !pause(ctx, overloadPause) {
					return nil
				}
				continue // what the partition knows tells whether it got through
			}
			known = book.Version
		}
		k.reached(known)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *ruleKeeper) reached(version uint32) {
	k.mu.Lock()
	k.version = max(k.version, version)
	k.mu.Unlock()
	k.newer.give()
}

// await returns once the partition has the book of that version or a newer one, or
// when one of the contexts ends.
func (k *ruleKeeper) await(ctx, leadership context.Context, version uint32) {
	for {
		newer := k.newer.next()
		k.mu.Lock()
		reached := k.version >= version
		k.mu.Unlock()
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

// AwaitRules returns once the partition has the rule book of that version or a newer
// one, at once if this replica does not lead: then it is another's business.
func (p *Partition) AwaitRules(ctx context.Context, version uint32) {
	if l := p.lead.Load(); l != nil && l.rules != nil {
		l.rules.await(ctx, l.ctx, version)
	}
}
