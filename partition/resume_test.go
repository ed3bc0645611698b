package partition

import (
	"errors"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/partition/attempts"
	"platform/partition/machine"
)

// heldPauses is an Invoker whose first pause after the last attempt is proposed late.
type heldPauses struct {
	Invoker
	held, release chan struct{}
}

type heldPartition struct {
	attempts.Partition
	h *heldPauses
}

func (h *heldPauses) Open(p attempts.Partition) attempts.Session {
	return h.Invoker.Open(heldPartition{p, h})
}

func (p heldPartition) Propose(c *machine.Progress, done func(machine.Outcome, error)) {
	if c.Steps[0].Kind == machine.StepPause {
		select {
		case p.h.held <- struct{}{}:
			go func() {
				<-p.h.release
				p.Partition.Propose(c, done)
			}()
			return
		default: // not the first one
		}
	}
	p.Partition.Propose(c, done)
}

// TestAResumeIsNotLostToThePauseOfTheLastAttempt resumes an invocation whose last attempt has
// failed, before the resulting pause is in the log.
func TestAResumeIsNotLostToThePauseOfTheLastAttempt(t *testing.T) {
	attempts := make(chan struct{}, 2)
	flaky := restate.NewService("Flaky", restate.WithInvocationRetryPolicy(restate.WithMaxRetryAttempts(1), restate.PauseOnMaxAttempts())).
		Handler("run", restate.NewServiceHandler(func(restate.Context, restate.Void) (restate.Void, error) {
			attempts <- struct{}{}
			if len(attempts) == 2 {
				return restate.Void{}, nil
			}
			return restate.Void{}, errors.New("not yet")
		}))
	h := &heldPauses{held: make(chan struct{}, 1), release: make(chan struct{})}
	c := newTestNodeWith(t, 1, func(cfg *Config) { h.Invoker, cfg.Invoker = cfg.Invoker, h }, flaky)
	call := request("Flaky", "run", "null")
	_, err := c.partitions[0].Invoke(t.Context(), call)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(h.held) == 1 }, time.Minute, time.Millisecond)

	before := c.partitions[0].Status().Applied
	resumed := make(chan machine.Outcome, 1)
	go func() {
		o, err := c.partitions[0].Operate(t.Context(), &machine.Resume{Target: call.ID})
		if err != nil {
			t.Error(err)
		}
		resumed <- o
	}()
	require.Eventually(t, func() bool { return c.partitions[0].Status().Applied > before }, time.Minute, time.Millisecond)
	close(h.release)
	require.Equal(t, machine.OK, (<-resumed).Code)
	require.Eventually(t, func() bool {
		inv, err := c.partitions[0].Find(t.Context(), call.ID)
		return err == nil && inv.Status == machine.Completed
	}, time.Minute, time.Millisecond, "the invocation is paused although it was resumed after its last attempt")
}
