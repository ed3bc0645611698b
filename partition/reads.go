package partition

import (
	"context"
	"fmt"

	"platform/internal/failpoint"
	"platform/partition/store"
)

// freshness is what the result of a read contains for certain. See DESIGN.md, "How to read".
type freshness uint8

const (
	// linearizable: everything that any leader acknowledged before the read. A majority of the voters
	// is queried, once for all concurrent reads.
	linearizable freshness = iota
	// leased: everything that any leader acknowledged more than an election timeout before the read.
	// No request is sent.
	leased
)

// read calls f with a view of the tables, and returns the leadership if what f has read may be returned.
func (p *Partition) read(ctx context.Context, fresh freshness, f func(*store.View) error) (*leadership, error) {
	return p.readThen(ctx, fresh, f, func(*leadership, *store.View) error { return nil })
}

// readThen is read, and then calls g with the same view, for what f had better not hold in memory until the leadership is
// verified.
func (p *Partition) readThen(ctx context.Context, fresh freshness, f func(*store.View) error, g func(*leadership, *store.View) error) (*leadership, error) {
	l, err := p.leader()
	if err != nil {
		return nil, err
	}
	view := p.tables.View()
	defer view.Close()
	if err := f(view); err != nil {
		return nil, err
	}
	if err := l.verify(ctx, fresh); err != nil {
		return nil, err
	}
	return l, g(l, view)
}

// verify returns nil if the tables, as read before the call, are as fresh as requested. Called before reading, it would
// prove nothing: another leader could take over in between.
func (l *leadership) verify(ctx context.Context, fresh freshness) error {
	if fresh == leased {
		if !l.p.group.HoldsLease(l.term) {
			return fmt.Errorf("partition %d: no majority has confirmed this leader within the election timeout: %w", l.p.id, ErrNotLeader)
		}
		return nil
	}
	failpoint.Pause(failpoint.Confirmation)
	if err := l.p.group.ConfirmLeadership(ctx, l.term); err != nil {
		return fmt.Errorf("confirm leadership of partition %d: %w", l.p.id, err)
	}
	return nil
}
