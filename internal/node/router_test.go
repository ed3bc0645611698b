package node

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/ingress"
	"platform/internal/fabric"
	"platform/internal/raftgroup"
)

// Whoever gets no answer is told whether to send the request again, and no details of
// the network between nodes.
func TestUnansweredRequestsAreExplained(t *testing.T) {
	broken := errors.New("connection to 10.0.0.7:5122: rpc error: code = Unavailable")
	unreachable := fmt.Errorf("partition 6: %w: %w", fabric.ErrUnreachable, broken)
	unknown := fmt.Errorf("partition 6 at 10.0.0.7:5122: %w: %w", raftgroup.ErrUnknownOutcome, broken)
	for _, tc := range []struct {
		name       string
		repeatable bool
		errs       []error // of one try after the other; the last one stays
		safe       bool
		want       string
	}{
		{"no leader", false, []error{unreachable}, true, "this node finds no leader of it (GET /cluster-health of the admin API tells what is missing)"},
		{"lost on the way", false, []error{unknown}, false, "its leader went away before it answered, and no other one has"},
		{"lost on the way, then no leader", false, []error{unknown, unreachable}, false, "this node finds no leader"},
		{"lost on the way, with an idempotency key", true, []error{unknown}, true, "its leader went away"},
		{"too much", false, []error{fmt.Errorf("%w: disk is almost full", raftgroup.ErrOverloaded)}, true, "disk is almost full"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, tries := time.Now(), 0
				_, err := insist(t.Context(), tc.repeatable, func() (int, error) {
					tries++
					return 0, tc.errs[min(tries, len(tc.errs))-1]
				})
				down, unavailable := errors.AsType[*ingress.UnavailableError](err)
				require.True(t, unavailable, err)
				require.Equal(t, tc.safe, down.SafeToRetry)
				require.ErrorContains(t, err, tc.want)
				require.NotContains(t, err.Error(), "rpc error")
				require.ErrorIs(t, err, tc.errs[len(tc.errs)-1], "nothing is lost for logs")
				require.LessOrEqual(t, time.Since(begin), patience+time.Second)
			})
		})
	}
}
