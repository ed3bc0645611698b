package partition

import (
	"context"
	"fmt"

	"platform/internal/failpoint"
)

// A read first reads the tables and then calls one of the following functions to find out
// whether the result may be returned. In the other order, another leader could take over in
// between.

// confirm returns nil if the tables, as read before the call, contained everything that any
// leader had acknowledged by then. It queries a majority of the voters, once for all
// concurrent reads.
func (l *leadership) confirm(ctx context.Context) error {
	failpoint.Pause(failpoint.Confirmation)
	if err := l.p.group.ConfirmLeadership(ctx, l.term); err != nil {
		return fmt.Errorf("confirm leadership of partition %d: %w", l.p.id, err)
	}
	return nil
}

// holdsLease returns nil if the tables, as read before the call, contained everything that
// any leader had acknowledged more than an election timeout earlier. It sends no request.
func (l *leadership) holdsLease() error {
	if l.p.group.HoldsLease(l.term) {
		return nil
	}
	return fmt.Errorf("partition %d: no majority has confirmed this leader within the election timeout: %w", l.p.id, ErrNotLeader)
}
