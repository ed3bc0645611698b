package invoker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/machine"
)

// failsWith returns an endpoint whose attempts fail with the messages in turn, and then with the last.
func failsWith(t testing.TB, messages ...string) func(*wire) {
	n := 0
	return func(w *wire) {
		message := messages[min(n, len(messages)-1)]
		n++
		w.ok()
		w.send(t, frame(protocol.Error, "08f403"+"12"+length(message)))
	}
}

// historyOf returns the failures in the history of an invocation, and after how many attempts.
func (s *shard) historyOf(t testing.TB, id ids.Invocation) (failures []string) {
	inv := s.record(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := inv.History.First; n < inv.History.Next; n++ {
		e, err := s.tables.Event(id, n)
		require.NoError(t, err)
		if e.Kind == machine.AttemptFailed {
			failures = append(failures, fmt.Sprint(e.Attempts, " ", e.Failure.Message))
		}
	}
	return failures
}

func TestFailuresThatDifferAreRecorded(t *testing.T) {
	for level, want := range map[feature.Level][]string{
		feature.Level3: nil, // nodes of that level cannot read them
		feature.Level4: {"1 boom", "4 bang", "5 boom"},
	} {
		t.Run(fmt.Sprint("level ", level), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := policy(9, metadata.Pause)
				cfg.Level = func() feature.Level { return level }
				o := newOffline(t, cfg, failsWith(t, "boom", "boom", "boom", "bang", "boom"))
				defer o.close()
				id, _ := o.shard.call(greeter, 1, "")
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, machine.Paused, o.shard.record(id).Status)
				require.Equal(t, want, o.shard.historyOf(t, id))
				retries := 0
				for _, p := range o.shard.seen {
					if len(p.Steps) > 0 && p.Steps[0].Kind == machine.StepRetry {
						retries++
					}
				}
				require.Len(t, want, retries)
			})
		})
	}
}

// The record of an invocation keeps when it first failed for a cause, however often it fails
// for others in between, and however its messages are numbered.
func TestTheFirstFailureOfACauseIsRecorded(t *testing.T) {
	for level, want := range map[feature.Level][]time.Duration{feature.Level3: nil, feature.Level4: {time.Second, 0}} {
		synctest.Test(t, func(t *testing.T) {
			cfg := policy(4, metadata.Pause)
			cfg.Defaults.Retry.InitialInterval, cfg.Defaults.Retry.Factor, cfg.Defaults.Retry.MaxInterval = time.Second, 1, time.Second
			cfg.Level = func() feature.Level { return level }
			o := newOffline(t, cfg, failsWith(t, "boom 1", "bang", "boom 2", "boom 3"))
			defer o.close()
			begin := time.Now()
			id, _ := o.shard.call(greeter, 1, "")
			time.Sleep(time.Hour)
			synctest.Wait()
			inv := o.shard.record(id)
			require.Equal(t, machine.Paused, inv.Status)
			var after []time.Duration
			for _, c := range inv.Causes {
				after = append(after, time.UnixMilli(c.Since).Sub(begin).Truncate(time.Second))
			}
			require.Equal(t, want, after, "level %d: bang, and then boom, which failed last", level)
		})
	}
}
