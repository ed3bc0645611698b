package invoker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/machine"
	"platform/proto/service"
)

// lead replaces the session by that of a new leader, which runs an invocation whose record it has, or
// has not read yet.
func (o *offline) lead(id ids.Invocation, unread bool) {
	o.session.Close()
	o.session = o.iv.openSession(o.shard)
	o.shard.session = o.session
	inv := o.shard.record(id)
	if unread {
		o.iv.enqueue(inv.VQueue(), inv.Length > 1, waiter{s: o.session, id: id, number: inv.Attempt})
	} else {
		o.session.Run(machine.RunOf(&inv))
	}
	synctest.Wait()
}

func TestANewLeaderContinuesTheCountOfAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		level  feature.Level
		unread bool
		starts []uint32 // failed attempts as told to the handler
		paused uint32   // the attempts after which it pauses
		next   time.Duration
	}{
		"level 4":           {feature.Level4, false, []uint32{0, 1, 2, 3, 4, 5, 6}, 7, 5 * time.Second},
		"level 4, not read": {feature.Level4, true, []uint32{0, 1, 2, 3, 4, 5, 6}, 7, 5 * time.Second},
		"nodes of level 3":  {feature.Level3, false, []uint32{0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6}, 0, time.Second},
		"level 3, not read": {feature.Level3, true, []uint32{0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6}, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := policy(7, metadata.Pause)
				cfg.Level = func() feature.Level { return c.level }
				o := newOffline(t, cfg, failsWith(t, "boom"))
				defer o.close()
				var sent [][]byte
				inner := o.iv.open
				o.iv.open = func(r endpoint.Receiver) Stream { return starts{inner(r).(*wire), &sent} }
				id, _ := o.shard.call(greeter, 1, "x")
				time.Sleep(12 * time.Second) // 1 s, 3 s and 5 s, and up to 30 % more
				synctest.Wait()
				st, _ := o.iv.Status(id)
				require.Equal(t, 4, st.RetryCount)

				o.lead(id, c.unread)
				st, _ = o.iv.Status(id)
				require.EqualValues(t, c.starts[4]+1, st.RetryCount)
				require.WithinRange(t, st.NextRetryAt, time.Now().Add(c.next), time.Now().Add(c.next*13/10))
				time.Sleep(time.Hour)
				synctest.Wait()
				inv := o.shard.record(id)
				require.Equal(t, machine.Paused, inv.Status)
				require.Equal(t, c.paused, inv.LastPause.Attempts)
				require.Equal(t, c.starts, retryCounts(t, sent))
			})
		})
	}
}

// retryCounts returns the failed attempts that each start message contains.
func retryCounts(t testing.TB, sent [][]byte) (counts []uint32) {
	for _, b := range sent {
		counts = append(counts, startMessage(t, b).RetryCountSinceLastStoredEntry)
	}
	return counts
}

// startMessage decodes the start message, which is the first that is sent to a handler.
func startMessage(t testing.TB, sent []byte) *service.StartMessage {
	var d protocol.Decoder
	d.Feed(sent)
	m, ok, err := d.Next()
	require.NoError(t, err)
	require.True(t, ok)
	start := new(service.StartMessage)
	require.NoError(t, start.UnmarshalVT(m.Payload))
	return start
}

// A resume during a backoff begins the retry policy again, under the next leader as well. What
// operators see goes on.
func TestANewLeaderKnowsThatTheRetryPolicyBeganAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(3, metadata.Pause)
		cfg.Level = func() feature.Level { return feature.Level4 }
		o := newOffline(t, cfg, failsWith(t, "boom"))
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "x")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, machine.FailedAttempts{Total: 2, Counted: 2, SinceCommand: 2}, o.shard.record(id).Failed)
		o.shard.submit(&machine.Resume{Target: id}, func(machine.Outcome, error) { o.session.Close() }) // before its next failure is counted
		synctest.Wait()
		o.lead(id, false)
		require.Equal(t, machine.FailedAttempts{Total: 3, Counted: 1, SinceCommand: 3}, o.shard.record(id).Failed)
	})
}

// Attempts that fail alike are counted in the record without a log entry for each: a new leader
// continues with seven eighths of them at least.
func TestRepeatedFailuresAreCountedInFewEntries(t *testing.T) {
	r := retryState{restored: true}
	reports := 0
	for n := 1; n <= 10_000; n++ {
		r.next(&failure{}, &metadata.RetryPolicy{})
		if r.overdue() {
			reports++
			r.report()
		}
		require.LessOrEqual(t, 8*(n-r.reported), n)
	}
	require.Less(t, reports, 80, fmt.Sprint(reports))
}

// An attempt that fails before the record is read does not know what it counts.
func TestCountsThatAreNotKnownAreNotReported(t *testing.T) {
	r := retryState{}
	r.next(&failure{}, &metadata.RetryPolicy{})
	require.Zero(t, r.counts())
	r.restore(machine.FailedAttempts{Total: 5, Counted: 3, SinceCommand: 2})
	r.restore(machine.FailedAttempts{Total: 6, Counted: 4, SinceCommand: 3})
	require.Equal(t, machine.FailedAttempts{Total: 6, Counted: 4, SinceCommand: 2}, r.counts())
	require.EqualValues(t, 1, r.report())
}
