package partition

import (
	"context"
	"fmt"
)

// A read looks at the tables first and then asks one of the following whether it may
// answer. The other order would leave time for another leader in between.

// confirm returns nil if what was read before the call showed everything that any
// leader had acknowledged when it was read. The majority of the voters is asked, once
// for all reads that wait.
func (l *leadership) confirm(ctx context.Context) error {
	if err := l.p.group.ConfirmLeadership(ctx, l.term); err != nil {
		return fmt.Errorf("confirm leadership of partition %d: %w", l.p.id, err)
	}
	return nil
}

// holdsLease returns nil if what was read before the call showed everything that any
// leader had acknowledged more than an election time-out earlier. Nobody is asked.
func (l *leadership) holdsLease() error {
	if l.p.group.HoldsLease(l.term) {
		return nil
	}
	return fmt.Errorf("partition %d: no majority has confirmed this leader within the election time-out: %w", l.p.id, ErrNotLeader)
}
