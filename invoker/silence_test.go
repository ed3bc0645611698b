package invoker

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/attempts"
)

// statusOf is the invoker's status of the only task.
func (o *offline) statusOf(t *testing.T) (id ids.Invocation, st attempts.Status) {
	o.session.mu.Lock()
	require.Len(t, o.session.tasks, 1)
	for id = range o.session.tasks {
	}
	o.session.mu.Unlock()
	st, known := o.iv.Status(id)
	require.True(t, known)
	return id, st
}

func TestAMissingResponseHeadIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, DefaultConfig(), func(*wire) {})
		defer o.close()
		var log syncBuffer
		o.session.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		begin := time.Now()
		_, ended := o.shard.call(greeter, 1, "")
		time.Sleep(29 * time.Second)
		synctest.Wait()
		_, st := o.statusOf(t)
		require.Zero(t, st.NoResponseSince)
		require.Equal(t, []time.Time{begin, begin.Add(time.Minute), begin.Add(11 * time.Minute)}, []time.Time{st.ActiveAt, st.SuspendAt, st.AbortAt})
		require.Empty(t, log.String())

		time.Sleep(2 * time.Second)
		synctest.Wait()
		_, st = o.statusOf(t)
		require.Equal(t, begin, st.NoResponseSince)
		require.Equal(t, begin.Add(11*time.Minute), st.AbortAt, "inactivity and abort timeout")
		now, total := o.iv.Silent()
		require.Equal(t, []uint64{1, 1}, []uint64{uint64(now), total})

		time.Sleep(5 * time.Minute)
		synctest.Wait()
		_, st = o.statusOf(t)
		require.Equal(t, begin.Add(11*time.Minute), st.AbortAt, "as announced")
		require.Zero(t, st.SuspendAt, "it was asked")
		require.False(t, o.wire(0).is(&o.wire(0).reset), "a handler may be silent for long")
		require.Equal(t, 1, strings.Count(log.String(), "endpoint sent no response headers"), log.String())

		o.wire(0).ok()
		_, st = o.statusOf(t)
		require.Zero(t, st.NoResponseSince)
		now, total = o.iv.Silent()
		require.Equal(t, []uint64{0, 1}, []uint64{uint64(now), total})
		answers(t)(o.wire(0))
		require.Nil(t, receive(t, ended).Failure)
	})
}

func TestASilentAttemptEndsAtItsReportedDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, DefaultConfig(), func(*wire) {})
		defer o.close()
		o.shard.call(greeter, 1, "")
		time.Sleep(time.Minute)
		synctest.Wait()
		_, st := o.statusOf(t)
		require.False(t, st.AbortAt.IsZero())
		time.Sleep(time.Until(st.AbortAt) - time.Second)
		synctest.Wait()
		require.False(t, o.wire(0).is(&o.wire(0).reset))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).reset))
		_, st = o.statusOf(t)
		require.Equal(t, "RT0001", st.LastFailure.ErrorCode)
		require.Contains(t, st.LastFailure.Message, "no response headers")
	})
}

func TestNoResponseWarningCanBeDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.NoResponseWarning = 0
		o := newOffline(t, cfg, func(*wire) {})
		defer o.close()
		o.shard.call(greeter, 1, "")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		_, total := o.iv.Silent()
		require.Zero(t, total)
	})
}
