package routing

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/fabric"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// restarted is a replica that leads for a minute, is away for a few seconds, leads
// again, and so on, and has the result after a number of terms.
type restarted struct {
	fabric.Local
	terms, left int
	away        time.Time // until when it does not lead
	full        bool      // each term begins with a full queue
	asked       int
	inputs      []int // sizes of the inputs to store
	since       []machine.Moment
}

func (r *restarted) Leading() bool            { return !time.Now().Before(r.away) }
func (r *restarted) Leader() raftgroup.Leader { return raftgroup.Leader{} }
func (r *restarted) Changed() <-chan struct{} { return nil }
func (r *restarted) Moment() machine.Moment {
	return machine.Moment{Leadership: 1, Number: uint64(r.asked + len(r.inputs))}
}

func (r *restarted) wait() (partition.Ending, error) {
	if r.asked++; r.full && r.left < r.terms && r.asked%3 != 0 {
		return partition.Ending{}, raftgroup.ErrOverloaded
	}
	if r.left == 0 {
		return partition.Ending{Result: journal.Result{Value: []byte("done")}}, nil
	}
	r.left--
	time.Sleep(time.Minute)
	r.away = time.Now().Add(5 * time.Second)
	return partition.Ending{}, raftgroup.ErrUnknownOutcome
}

func (r *restarted) Call(_ context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	r.since = append(r.since, inv.Since)
	e, err := r.wait()
	return e, machine.Outcome{}, err
}

// Invoke stores an invocation, after a first attempt whose outcome is unknown.
func (r *restarted) Invoke(_ context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	r.inputs, r.since = append(r.inputs, len(inv.Input)), append(r.since, inv.Since)
	if len(r.inputs) == 1 {
		return machine.Outcome{}, raftgroup.ErrUnknownOutcome
	}
	return machine.Outcome{Code: machine.Existing, Own: true}, nil
}

func (r *restarted) Await(context.Context, ids.Invocation) (partition.Ending, error) { return r.wait() }

// A call and an attach outlast any number of failovers, as long as each of them is over
// in time.
func TestLongRequestsOutlastAnyNumberOfFailovers(t *testing.T) {
	for _, full := range []bool{false, true} {
		for name, request := range map[string]func(context.Context, *Router) (Response, error){
			"call": func(ctx context.Context, r *Router) (Response, error) {
				return r.Call(ctx, &machine.Invoke{Target: machine.Target{Service: "S", Handler: "h"}}, nil)
			},
			"attach": func(ctx context.Context, r *Router) (Response, error) {
				return r.Attach(ctx, ids.Invocation{1})
			},
		} {
			t.Run(fmt.Sprintf("%s, full %t", name, full), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &restarted{terms: 10, left: 10, full: full}
					r := &Router{directory: fabric.NewDirectory(1, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return p }})}
					a, err := request(t.Context(), r)
					require.NoError(t, err)
					require.Equal(t, "done", string(a.Result.Value))
				})
			})
		}
	}
}

// All attempts of a request say that its ID was new before the first of them, if it was.
func TestAttemptsHaveTheMomentBeforeTheFirst(t *testing.T) {
	for name, request := range map[string]func(context.Context, *Router, *machine.Invoke) error{
		"call": func(ctx context.Context, r *Router, inv *machine.Invoke) error {
			_, err := r.Call(ctx, inv, nil)
			return err
		},
		"send": func(ctx context.Context, r *Router, inv *machine.Invoke) error {
			_, err := r.Send(ctx, inv)
			return err
		},
	} {
		for _, fresh := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fresh %t", name, fresh), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &restarted{terms: 3, left: 3, asked: 5}
					r := &Router{directory: fabric.NewDirectory(1, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return p }})}
					require.NoError(t, request(t.Context(), r, &machine.Invoke{Target: machine.Target{Service: "S", Handler: "h"}, Fresh: fresh}))
					require.Greater(t, len(p.since), 1)
					for _, since := range p.since {
						require.Equal(t, fresh, since == machine.Moment{Leadership: 1, Number: 5}, "%v", since)
					}
				})
			})
		}
	}
}

// A call with a large input keeps it until the invocation is stored, and no longer.
func TestACallReleasesALargeInputOnceItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &restarted{terms: 3, left: 3}
		r := &Router{directory: fabric.NewDirectory(1, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return p }})}
		inv := &machine.Invoke{Target: machine.Target{Service: "S", Handler: "h"}, Input: make([]byte, largeInput)}
		released := 0
		a, err := r.Call(t.Context(), inv, func() {
			require.Equal(t, []int{largeInput, largeInput}, p.inputs, "the unknown outcome was resolved with the input")
			require.Equal(t, p.terms, p.left, "no request has waited yet")
			released++
		})
		require.NoError(t, err)
		require.Equal(t, "done", string(a.Result.Value))
		require.Equal(t, 1, released)
		require.Nil(t, inv.Input)
		require.Len(t, p.inputs, 2, "failovers afterwards repeat only the wait")
	})
}

// A result whose retention may end before a retry is awaited by the request itself.
func TestACallWithAShortRetentionIsRepeatedAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, key := &restarted{terms: 3, left: 3}, "key"
		r := &Router{directory: fabric.NewDirectory(1, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return p }})}
		inv := &machine.Invoke{Target: machine.Target{Service: "S", Handler: "h"}, IdempotencyKey: &key, Input: make([]byte, largeInput)}
		_, err := r.Call(t.Context(), inv, nil)
		require.NoError(t, err)
		require.Empty(t, p.inputs)
		require.NotNil(t, inv.Input)
	})
}

// Retries and the lookups in them have one budget together.
func TestARequestWithoutALeaderHasOneBudget(t *testing.T) {
	for name, lost := range map[string]time.Duration{"no leader": 0, "the first leader fails after a second": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &failing{after: lost}
				r := &Router{directory: fabric.NewDirectory(1, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return p }})}
				begin := time.Now()
				_, err := r.Attach(t.Context(), ids.Invocation{1})
				require.ErrorAs(t, err, new(*UnavailableError))
				require.InDelta(t, (lost + fabric.FailoverBudget).Seconds(), time.Since(begin).Seconds(), 0.5)
			})
		})
	}
}

// failing is a replica that leads until its first request has taken a while, if at all.
type failing struct {
	restarted
	after time.Duration
}

func (f *failing) Leading() bool { return f.after > 0 }

func (f *failing) Await(context.Context, ids.Invocation) (partition.Ending, error) {
	time.Sleep(f.after)
	f.after = 0
	return partition.Ending{}, raftgroup.ErrUnknownOutcome
}

// The time without a leader is bounded in each failover, also after long waits.
func TestALongRequestIsGivenUpWhenNoLeaderFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &restarted{terms: 10, left: 1}
		r := &Router{directory: fabric.NewDirectory(1, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return p }})}
		begin := time.Now()
		time.AfterFunc(time.Minute+time.Second, func() { p.away = time.Now().Add(time.Hour) })
		_, err := r.Call(t.Context(), &machine.Invoke{Target: machine.Target{Service: "S", Handler: "h"}}, nil)
		down, unavailable := errors.AsType[*UnavailableError](err)
		require.True(t, unavailable, err)
		require.False(t, down.SafeToRetry)
		require.LessOrEqual(t, time.Since(begin), time.Minute+fabric.FailoverBudget+time.Second)
	})
}

// Clients learn whether the request is safe to retry, but no details of
// the network between nodes.
func TestErrorsForClients(t *testing.T) {
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
		{"no leader", false, []error{unreachable}, true, "this node finds no leader for it (see GET /cluster-health of the admin API)"},
		{"lost on the way", false, []error{unknown}, false, "its leader failed before it responded, and no other leader has responded since"},
		{"lost on the way, then no leader", false, []error{unknown, unreachable}, false, "this node finds no leader"},
		{"lost on the way, with an idempotency key", true, []error{unknown}, true, "its leader failed"},
		{"too much", false, []error{fmt.Errorf("%w: disk is almost full", raftgroup.ErrOverloaded)}, true, "disk is almost full"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, tries := time.Now(), 0
				_, err := retry(t.Context(), tc.repeatable, func(context.Context) (int, error) {
					tries++
					return 0, tc.errs[min(tries, len(tc.errs))-1]
				})
				down, unavailable := errors.AsType[*UnavailableError](err)
				require.True(t, unavailable, err)
				require.Equal(t, tc.safe, down.SafeToRetry)
				require.ErrorContains(t, err, tc.want)
				require.NotContains(t, err.Error(), "rpc error")
				require.ErrorIs(t, err, tc.errs[len(tc.errs)-1], "nothing is lost for logs")
				require.LessOrEqual(t, time.Since(begin), fabric.FailoverBudget)
			})
		})
	}
}

// forgetful is a replica that loses its leadership while an attach waits, if it does, and
// has no result later.
type forgetful struct {
	restarted
	interrupts bool
}

func (f *forgetful) Await(context.Context, ids.Invocation) (partition.Ending, error) {
	if f.interrupts {
		f.interrupts = false
		return partition.Ending{}, raftgroup.ErrUnknownOutcome
	}
	return partition.Ending{}, partition.ErrNotFound
}

// A result whose retention is shorter than a failover may expire while an attach waits for
// it. The attach must not report that there was no such invocation.
func TestAnAttachWhoseResultExpiredInAFailoverIsNotReportedAsUnknown(t *testing.T) {
	for _, interrupts := range []bool{true, false} {
		p := &forgetful{interrupts: interrupts}
		r := &Router{directory: fabric.NewDirectory(1, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return p }})}
		_, err := r.Attach(t.Context(), ids.Invocation{1})
		down, unavailable := errors.AsType[*UnavailableError](err)
		require.Equal(t, interrupts, unavailable, err)
		require.Equal(t, !interrupts, errors.Is(err, ErrNotFound), err)
		if unavailable {
			require.True(t, down.SafeToRetry)
		}
	}
}

// storing is a replica that stores an invocation and then cannot be reached for its result.
type storing struct {
	restarted
	errs []error // of the requests for the result, one after the other; the last one stays
}

func (s *storing) Invoke(context.Context, *machine.Invoke) (machine.Outcome, error) {
	return machine.Outcome{}, nil
}

func (s *storing) Await(context.Context, ids.Invocation) (partition.Ending, error) {
	err := s.errs[0]
	s.errs = s.errs[min(1, len(s.errs)-1):]
	return partition.Ending{}, err
}

// A call whose invocation has been stored is safe to repeat only with an idempotency key, whatever
// becomes of the request for its result.
func TestAStoredCallIsNotReportedAsSafeToRetry(t *testing.T) {
	key := "key"
	for name, errs := range map[string][]error{
		"no leader any longer":            {fabric.ErrUnreachable},
		"too much to do":                  {raftgroup.ErrOverloaded},
		"interrupted, and expired since":  {raftgroup.ErrUnknownOutcome, partition.ErrNotFound},
		"expired":                         {partition.ErrNotFound},
		"its leader failed, and no other": {raftgroup.ErrUnknownOutcome},
	} {
		for _, idempotencyKey := range []*string{nil, &key} {
			t.Run(fmt.Sprintf("%s, with a key %t", name, idempotencyKey != nil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &storing{errs: errs}
					r := &Router{directory: fabric.NewDirectory(1, fabric.DirectoryConfig{Local: func(uint32) fabric.Local { return p }})}
					inv := &machine.Invoke{
						Target: machine.Target{Service: "S", Handler: "h"}, Input: make([]byte, largeInput),
						IdempotencyKey: idempotencyKey, Retention: machine.Retention{Completion: machine.MinRetention},
					}
					_, err := r.Call(t.Context(), inv, func() {})
					down, unavailable := errors.AsType[*UnavailableError](err)
					require.True(t, unavailable, err)
					require.Equal(t, idempotencyKey != nil && name != "expired", down.SafeToRetry, err)
				})
			})
		}
	}
}
