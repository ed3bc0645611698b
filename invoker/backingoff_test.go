package invoker

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

// When an endpoint is down, all invocations of a node may wait for their next attempt.
func TestInvocationsThatBackOffHoldLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, text = 200, 60 << 10
		long := func(s string) string { return hex.EncodeToString(protowire.AppendString(nil, strings.Repeat(s, text))) }
		message := frame(protocol.Error, "08f403"+"12"+long("m")+"1a"+long("s"))
		cfg := policy(0, metadata.Pause)
		o := newOffline(t, cfg, func(w *wire) {
			w.ok()
			w.send(t, message)
		})
		o.iv.slots.maxRecords = 50
		defer func() {
			o.close()
			require.Zero(t, o.iv.failureTexts.Load())
			require.Zero(t, o.iv.backoffRecords.Load())
		}()
		for n := range uint64(count) {
			unique := [16]byte(binary.BigEndian.AppendUint64(make([]byte, 8, 16), n+1))
			o.shard.callAs(ids.NewInvocation(n, unique), greeter, `"`+strings.Repeat("i", keptInput-100)+`"`)
		}
		time.Sleep(cfg.Defaults.Retry.InitialInterval / 2)
		synctest.Wait()
		o.session.mu.Lock()
		defer o.session.mu.Unlock()
		require.Len(t, o.session.tasks, count)
		held, described, records := 0, 0, 0
		for _, task := range o.session.tasks {
			require.Equal(t, backingOff, task.state)
			require.NotEmpty(t, task.last.Message)
			held += len(task.input) + len(task.last.Message) + len(task.last.Stacktrace) + len(task.last.RelatedName)
			require.Nil(t, task.input)
			if task.inv != nil {
				records++
			} else {
				require.Equal(t, greeter.Service, task.vqueue.Service)
			}
			if len(task.last.Stacktrace) == text {
				described++
			}
		}
		require.LessOrEqual(t, held, maxFailureTexts+count*briefText)
		require.Positive(t, described, "a few are described in full")
		require.LessOrEqual(t, o.iv.failureTexts.Load(), int64(maxBriefTexts))
		require.Equal(t, o.iv.slots.maxRecords, records)
	})
}

// Invocations whose records were dropped while they backed off are attempted again.
func TestInvocationsThatBackOffWithoutRecordsContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		o := newOffline(t, policy(0, metadata.Pause), func(w *wire) {
			w.ok()
			if down.Load() {
				w.send(t, frame(protocol.Error, "08f403"))
			} else {
				w.send(t, outputHi+end)
			}
		})
		defer o.close()
		o.iv.slots.maxRecords = 2
		var ended []chan journal.Result
		for n := range byte(10) {
			_, done := o.shard.call(greeter, n+1, `"x"`)
			ended = append(ended, done)
		}
		time.Sleep(time.Minute)
		require.EqualValues(t, 2, o.iv.backoffRecords.Load())
		down.Store(false)
		for _, done := range ended {
			require.Nil(t, receive(t, done).Failure)
		}
		require.Zero(t, o.iv.backoffRecords.Load())
	})
}

// Even short failures of very many invocations take a bounded amount of memory.
func TestTextsOfManyFailuresAreBounded(t *testing.T) {
	iv := new(Invoker)
	s := &Session{iv: iv}
	held := 0
	const count = 3 * maxBriefTexts / briefText
	tasks := make([]*task, count)
	for i := range tasks {
		tasks[i] = newTask(s, ids.Invocation{}, 1)
		f := failureOf(errors.New(strings.Repeat("m", briefText)))
		tasks[i].setLastLocked(f)
		require.True(t, tasks[i].repeatsLocked(f))
		held += len(tasks[i].last.Message)
	}
	require.LessOrEqual(t, held, maxBriefTexts+count*lineText)
	for _, task := range tasks {
		task.setLastLocked(nil)
	}
	require.Zero(t, iv.failureTexts.Load())
}

// An invocation can back off for months, and be resumed or killed any number of times meanwhile.
func TestBackoffsThatWereCutShortAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(0, metadata.Pause), func(w *wire) {
			w.ok()
			w.send(t, frame(protocol.Error, "08f403"+"40"+"80b8e2a804")) // again in two weeks
		})
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		for range 10 {
			synctest.Wait()
			require.Len(t, o.session.timers.backoff, 1)
			o.session.Hasten(&machine.Hasten{ID: id, Attempt: o.shard.record(id).Attempt})
		}
		synctest.Wait()
		require.Len(t, o.times, 11)
		o.shard.submit(&machine.Kill{Target: id}, func(machine.Outcome, error) {})
		synctest.Wait()
		require.Empty(t, o.session.timers.backoff)
	})
}
