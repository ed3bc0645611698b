package invoker

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// TestNotificationsHaveNoGapsOrDuplicates extends the journal of an invocation while attempts
// begin, fail and begin again.
func TestNotificationsHaveNoGapsOrDuplicates(t *testing.T) {
	const sleeps = 60
	cfg := quickConfig()
	script := func(x *exchange) {
		m, _ := x.read()
		known := knownEntries(t, m.payload)
		if known < 1 {
			t.Errorf("start %s", m.payload)
		}
		seen, commands := map[string]bool{}, 0
		note := func(m message) {
			if !m.kind.IsNotification() {
				commands++
				return
			}
			if seen[m.payload] {
				t.Errorf("%s was sent twice", m.payload)
			}
			seen[m.payload] = true
		}
		for range known {
			m, ok := x.read()
			if !ok {
				return
			}
			note(m)
		}
		x.head()
		wake := journalMillis(time.Now().Add(15 * time.Millisecond))
		issued := commands - 1
		for ; issued < sleeps && issued < commands+9; issued++ {
			x.send(frame(journal.Sleep, "08"+wake+fmt.Sprintf("58%02x", issued+1)))
		}
		if issued < sleeps {
			x.send(frame(protocol.Error, "08f403")) // while the timers of this attempt fire
			return
		}
		for len(seen) < sleeps {
			m, ok := x.read()
			if !ok {
				t.Errorf("the request ended with %d of %d notifications", len(seen), sleeps)
				return
			}
			if m.kind.IsCommand() {
				t.Errorf("a command after the replay: %+v", m)
			}
			note(m)
		}
		x.send(outputHi + end)
		x.expectEnd()
	}
	b := scripted(t, cfg, script)
	var ended []chan journal.Result
	for n := range byte(20) {
		_, done := b.shard.call(greeter, n+1, `"hi"`)
		ended = append(ended, done)
	}
	for _, done := range ended {
		require.Nil(t, receive(t, done).Failure)
	}
}

// knownEntries reads field 3 of a start, which follows the fixed id fields.
func knownEntries(t testing.TB, start string) int {
	b := unhex(t, start)[2+24+2+38:]
	require.EqualValues(t, 0x18, b[0])
	n, size := binary.Uvarint(b[1:])
	require.Positive(t, size)
	return int(n)
}

func TestEarlyNotificationsWaitForTheReplay(t *testing.T) {
	s := &recorder{}
	task := &task{id: ids.NewInvocation(1, [16]byte{1}), number: 3, state: loading}
	a := &attempt{t: task, stream: s, plan: &plan{version: protocol.V7}, memory: attemptMemory{account: account{b: &budget{}}}, notifications: notificationQueue{reading: true}}
	task.a = a
	for _, index := range []uint32{2, 4, 5} {
		task.notify(&machine.Notify{Index: index, Entry: journal.Entry{Type: journal.SleepCompletion, Payload: []byte{8, byte(index), 0x22, 0}}})
	}
	require.Empty(t, s.chunks)
	task.moveLocked(replayed)
	a.notifications.next = 4 // the replay held 0 to 3
	for _, n := range a.notifications.early {
		a.notifyLocked(n)
	}
	a.notifyLocked(&machine.Notify{Index: 5, Entry: journal.Entry{Type: journal.SleepCompletion}})
	want := append(unhex(t, "800c000000000004 08042200"), unhex(t, "800c000000000004 08052200")...)
	require.Equal(t, want, s.bytes())
}

type recorder struct {
	wire
	chunks [][]byte
}

func (r *recorder) Write(chunks ...[]byte) { r.chunks = append(r.chunks, chunks...) }

func (r *recorder) bytes() (all []byte) {
	for _, c := range r.chunks {
		all = append(all, c...)
	}
	return all
}

func TestANotificationBeforeTheAttemptIsRead(t *testing.T) {
	task := &task{state: waiting, input: []byte{1}}
	task.notify(&machine.Notify{Index: 1})
	require.Nil(t, task.input, "the journal is more than the input now")
}

func TestRunAckOfVersion7(t *testing.T) {
	s := &recorder{}
	task := &task{state: streaming}
	a := &attempt{t: task, stream: s, plan: &plan{version: protocol.V7}, memory: attemptMemory{account: account{b: &budget{}}}, notifications: notificationQueue{next: 1, acks: map[uint32]struct{}{1: {}}}}
	task.a = a
	for i, id := range []byte{1, 2, 1} {
		a.notifyLocked(&machine.Notify{Index: uint32(i + 2), Entry: journal.Entry{Type: journal.RunCompletion, Payload: []byte{8, id, 0x2a, 0}}})
	}
	require.Equal(t, unhex(t, "0007000000000002 0801 8011000000000004 08022a00 8011000000000004 08012a00"), s.bytes(),
		"an acknowledgement once, and only of what this attempt proposed")
}

func TestCloseWhileBusy(t *testing.T) {
	block := make(chan struct{})
	b := scripted(t, quickConfig(), func(x *exchange) {
		x.read() // it may be cut before that
		x.head()
		x.send(frame(journal.Run, "5801"))
		<-block
	})
	defer close(block)
	var work sync.WaitGroup
	for n := range byte(50) {
		work.Go(func() { b.shard.call(counter(fmt.Sprint(n)), n+1, "") })
		work.Go(func() { b.shard.call(greeter, n+100, "") })
	}
	work.Wait()
	require.Eventually(t, func() bool { return b.started() > 20 }, time.Minute, time.Millisecond)
	b.session.Close()
	proposals := len(b.shard.proposed())
	b.session.Run(&machine.Run{Invocation: &machine.Invocation{ID: ids.NewInvocation(7, [16]byte{1}), Target: greeter, Attempt: 1}})
	b.session.Close()
	require.Zero(t, b.iv.slots.used)
	require.Len(t, b.shard.proposed(), proposals)
}

func TestLostLeadershipStopsTheAttempt(t *testing.T) {
	for name, answer := range map[string]struct {
		o   machine.Outcome
		err error
	}{"stale": {machine.Outcome{Code: machine.Stale}, nil}, "error": {machine.Outcome{}, attempts.ErrGone}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffline(t, policy(1, metadata.Kill), func(w *wire) {
					w.ok()
					w.send(t, frame(journal.Sleep, "08015801"))
				})
				defer o.close()
				o.session.part = deposed{o.shard, answer.o, answer.err}
				id, _ := o.shard.call(greeter, 1, "")
				synctest.Wait()
				require.True(t, o.wire(0).is(&o.wire(0).reset))
				_, known := o.iv.Status(id)
				require.False(t, known)
				require.Zero(t, o.iv.slots.used)
			})
		})
	}
}

// deposed is a partition that returns the same outcome for all progress.
type deposed struct {
	*shard
	o   machine.Outcome
	err error
}

func (d deposed) Propose(_ *machine.Progress, done func(machine.Outcome, error)) { done(d.o, d.err) }

func TestRefusedProgressFailsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(2, metadata.Pause), func(w *wire) {
			w.ok()
			w.send(t, frame(journal.Sleep, "08015801"))
		})
		defer o.close()
		o.session.part = deposed{o.shard, machine.Outcome{Code: machine.Invalid}, nil}
		id, _ := o.shard.call(greeter, 1, "")
		synctest.Wait()
		st, _ := o.iv.Status(id)
		require.Equal(t, "RT0012", st.LastFailure.ErrorCode)
	})
}

func TestANewerAdmissionReplacesTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(2, metadata.Pause), func(w *wire) { w.ok() })
		defer o.close()
		inv := machine.Invocation{ID: ids.NewInvocation(7, [16]byte{1}), Target: greeter, Attempt: 5}
		run := func(attempt uint64) {
			record := inv
			record.Attempt = attempt
			o.session.Run(&machine.Run{Invocation: &record, Input: []byte{0x72, 0}})
			synctest.Wait()
		}
		run(5)
		run(5)
		run(4)
		require.Len(t, o.times, 1)
		run(6)
		require.Len(t, o.times, 2)
		require.True(t, o.wire(0).is(&o.wire(0).reset))
		require.False(t, o.wire(1).is(&o.wire(1).reset))
		o.session.Abort(&machine.Abort{ID: inv.ID, Attempt: 5})
		require.False(t, o.wire(1).is(&o.wire(1).reset), "an abort of an older attempt is not meant")
		o.session.Abort(&machine.Abort{ID: inv.ID, Attempt: 6})
		require.True(t, o.wire(1).is(&o.wire(1).reset))
		require.Zero(t, o.iv.slots.used)
	})
}

func TestStreamIsNotReadWhileTooMuchIsInTransitToTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := 0
		begin := make(chan struct{})
		o := newOffline(t, policy(1, metadata.Kill), func(w *wire) {
			w.ok()
			<-begin
			big := append([]byte{8, 1, 0x72, 0x80, 0x80, 0x40}, make([]byte, 1<<20)...)
			for range 10 {
				w.recv.Data(append(protocol.AppendHeader(nil, protocol.ProposeRunCompletion, len(big)), big...))
				mu.Lock()
				sent++
				mu.Unlock()
			}
		})
		defer o.close()
		o.shard.call(greeter, 1, "")
		synctest.Wait()
		o.shard.hold(true)
		close(begin)
		synctest.Wait()
		mu.Lock()
		require.Equal(t, openVolume>>20-1, sent)
		mu.Unlock()
		o.shard.hold(false)
		synctest.Wait()
		mu.Lock()
		require.Equal(t, 10, sent)
		mu.Unlock()
	})
}
