package partition

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// outboxTable is the outbox table of a partition with its receivers.
type outboxTable struct {
	mu       sync.Mutex
	first    map[uint32]uint64 // lowest stored sequence number
	rows     map[uint32][]machine.Message
	received map[uint32][]machine.Message
	last     map[uint32]uint64
	failures int // deliveries that will fail, whether or not they took effect
	refusals int // acknowledgements that will be refused
	commands int
	most     int           // bytes that receivers accept; 0: unlimited
	largest  int           // command accepted
	batch    int           // largest accepted command of several messages
	closed   bool          // receivers accept nothing
	accept   chan struct{} // if not nil: deliveries wait until it is closed
}

func (tt *outboxTable) open() {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	tt.closed = false
}

func newOutboxTable() *outboxTable {
	return &outboxTable{first: map[uint32]uint64{}, rows: map[uint32][]machine.Message{}, received: map[uint32][]machine.Message{}, last: map[uint32]uint64{}}
}

func (tt *outboxTable) put(to uint32, m machine.Message) *machine.Send {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if tt.first[to] == 0 {
		tt.first[to] = 1
	}
	tt.rows[to] = append(tt.rows[to], m)
	return &machine.Send{To: to, Seq: tt.first[to] + uint64(len(tt.rows[to])) - 1, Message: m}
}

func (tt *outboxTable) read(to uint32, from uint64, count, bytes int) (uint64, []machine.Message, bool, error) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	from = max(from, tt.first[to])
	skip := min(int(from-tt.first[to]), len(tt.rows[to]))
	rows := tt.rows[to][skip:]
	n := 0
	for n < min(count, len(rows)) {
		if bytes -= codec.MessageSize(rows[n]); n > 0 && bytes < 0 {
			break
		}
		n++
	}
	return from, slices.Clone(rows[:n]), n < len(rows), nil
}

func (tt *outboxTable) deliver(_ context.Context, to uint32, d *machine.Deliver) error {
	if tt.accept != nil {
		<-tt.accept
	}
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if tt.closed {
		return errors.New("no leader")
	}
	size := 0
	for _, m := range d.Messages {
		size += codec.MessageSize(m)
	}
	if tt.most > 0 && size > tt.most {
		return raftgroup.ErrTooLarge
	}
	tt.largest = max(tt.largest, size)
	if len(d.Messages) > 1 {
		tt.batch = max(tt.batch, size)
	}
	tt.commands++
	fail := tt.failures > 0 && rand.IntN(2) == 0
	if fail {
		tt.failures--
		if rand.IntN(2) == 0 {
			return errors.New("lost in transit")
		}
	}
	for i, m := range d.Messages {
		switch seq := d.FirstSeq + uint64(i); {
		case seq <= tt.last[to]: // duplicate
		case seq == tt.last[to]+1:
			tt.last[to] = seq
			tt.received[to] = append(tt.received[to], m)
		default:
			panic("gap in an outbox")
		}
	}
	if fail {
		return errors.New("answer lost")
	}
	return nil
}

func (tt *outboxTable) acknowledge(to uint32, upto uint64) error {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	if tt.refusals > 0 {
		tt.refusals--
		return raftgroup.ErrOverloaded
	}
	n := upto - tt.first[to] + 1
	tt.rows[to] = tt.rows[to][n:]
	tt.first[to] += n
	return nil
}

func (tt *outboxTable) snapshot(to uint32) []machine.Message {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return slices.Clone(tt.received[to])
}

func (tt *outboxTable) left(to uint32) int {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return len(tt.rows[to])
}

// config returns a complete configuration of the outbox of partition 0, one of count.
func (tt *outboxTable) config(count uint32) outboxConfig {
	return outboxConfig{
		count: count, read: tt.read, deliver: tt.deliver, acknowledge: tt.acknowledge,
		log: slog.New(slog.DiscardHandler), memory: NewOutboxMemory(),
	}
}

func runOutbox(t *testing.T, tt *outboxTable) *outbox {
	o := newOutbox(tt.config(4))
	t.Cleanup(runUntilStopped(t, o))
	return o
}

// runUntilStopped runs an outbox; stop ends it and waits for its end.
func runUntilStopped(t *testing.T, o *outbox) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, o.Run(ctx)) })
	return func() { cancel(); wg.Wait() }
}

func numbered(n uint32) machine.Message {
	return &machine.Complete{Sink: machine.Sink{Completion: n, Type: journal.CallCompletion}}
}

func requireInOrder(t *testing.T, got []machine.Message, want int) {
	t.Helper()
	require.Len(t, got, want)
	for i, m := range got {
		require.Equal(t, uint32(i), m.(*machine.Complete).Sink.Completion)
	}
}

func TestOutboxDeliversStoredMessagesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		for i := range 300 {
			tt.put(2, numbered(uint32(i)))
		}
		runOutbox(t, tt)
		time.Sleep(time.Second)
		synctest.Wait()
		requireInOrder(t, tt.received[2], 300)
		require.Zero(t, tt.left(2), "delivered messages are acknowledged eventually")
	})
}

// The partition itself may be overloaded when it is to delete what was delivered, and no further message follows.
func TestOutboxRepeatsRefusedAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		tt.refusals = 3
		for i := range ackEvery + 10 {
			tt.put(2, numbered(uint32(i)))
		}
		runOutbox(t, tt)
		time.Sleep(time.Second)
		synctest.Wait()
		requireInOrder(t, tt.received[2], ackEvery+10)
		require.Zero(t, tt.refusals)
		require.Zero(t, tt.left(2), "delivered messages are deleted")
	})
}

// A message may have been read from the table, and delivered, before it is queued.
func TestOutboxQueuesNoMessageThatItHasReadFromTheTable(t *testing.T) {
	tt := newOutboxTable()
	o := newOutbox(tt.config(4))
	q := o.queueTo(2)
	first, second := tt.put(2, numbered(0)), tt.put(2, numbered(1))
	_, batch, err := o.nextBatch(2, q)
	require.NoError(t, err)
	require.Len(t, batch, 2)
	require.True(t, q.add(first), "while it is delivered")
	q.removeDelivered(2)
	require.True(t, q.add(second))
	_, batch, err = o.nextBatch(2, q)
	require.NoError(t, err)
	require.Empty(t, batch)
	require.True(t, q.add(tt.put(2, numbered(2))))
	from, batch, err := o.nextBatch(2, q)
	require.NoError(t, err)
	require.Len(t, batch, 1)
	require.EqualValues(t, 3, from)
}

func TestOutboxKeepsOrderUnderFailuresAndBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		tt.failures = 200
		tt.put(1, numbered(0))
		o := runOutbox(t, tt)
		const count = 3*maxQueuedMessages + 7
		for i := 1; i < count; i++ {
			o.send(tt.put(1, numbered(uint32(i))))
			if i%997 == 0 {
				time.Sleep(3 * time.Millisecond)
			}
		}
		o.send(tt.put(3, numbered(0)))
		time.Sleep(time.Hour)
		synctest.Wait()
		requireInOrder(t, tt.received[1], count)
		requireInOrder(t, tt.received[3], 1)
		require.Zero(t, tt.left(1))
		require.Zero(t, tt.left(3))
	})
}

// sized returns a message of approximately the given size.
func sized(n uint32, bytes int) machine.Message {
	return &machine.Complete{Sink: machine.Sink{Completion: n}, Result: journal.Result{Value: make([]byte, bytes)}}
}

// The receiver rejects commands above the limits of the log, whatever their number of
// messages.
func TestOutboxBoundsTheBytesOfACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		tt.most = limits.StoredCommand
		for i := range 40 { // before the receiver has a leader
			tt.put(1, sized(uint32(i), 3<<20))
		}
		tt.accept = make(chan struct{})
		o := runOutbox(t, tt)
		o.send(tt.put(1, sized(40, 60<<20)))
		for i := 41; i < 500; i++ {
			o.send(tt.put(1, sized(uint32(i), 10<<10)))
		}
		close(tt.accept) // the number of commands does not depend on how fast they were sent
		time.Sleep(time.Hour)
		synctest.Wait()
		requireInOrder(t, tt.received[1], 500)
		require.LessOrEqual(t, tt.largest, 60<<20+1<<10, "a large message is delivered alone")
		require.LessOrEqual(t, tt.batch, limits.DeliverBatch)
		require.Less(t, tt.commands, 70)
		require.Zero(t, o.memory.used.Load())
	})
}

// While receivers accept nothing, messages stay in the table.
func TestOutboxHoldsFewBytesInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		tt.closed = true
		o := runOutbox(t, tt)
		for i := range 300 {
			for to := range uint32(3) {
				o.send(tt.put(to+1, sized(uint32(i), 1<<20)))
			}
			time.Sleep(time.Millisecond)
			require.LessOrEqual(t, o.memory.used.Load(), int64(outboxBytes))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, o.memory.used.Load(), "between retries nothing is held")
		tt.open()
		time.Sleep(time.Hour)
		synctest.Wait()
		for to := range uint32(3) {
			requireInOrder(t, tt.received[to+1], 300)
		}
		require.Zero(t, o.memory.used.Load())
	})
}

// A message keeps the log entry that it is a part of, which may be much larger.
func TestOutboxHoldsNoMessageBetweenRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		tt.closed = true
		o := runOutbox(t, tt)
		for i := range uint32(3) {
			o.send(tt.put(1, sized(i, 10)))
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Zero(t, o.memory.used.Load())
		}
		tt.open()
		time.Sleep(time.Minute)
		synctest.Wait()
		requireInOrder(t, tt.received[1], 3)
	})
}

// A receiver that takes long to accept a command leaves no more in memory than its share.
func TestOutboxBoundsTheBytesForASlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		cfg := tt.config(4)
		accept := make(chan struct{})
		cfg.deliver = func(ctx context.Context, to uint32, d *machine.Deliver) error {
			<-accept
			return tt.deliver(ctx, to, d)
		}
		o := newOutbox(cfg)
		stop := runUntilStopped(t, o)
		for i := range 40 {
			o.send(tt.put(1, sized(uint32(i), 1<<20)))
			synctest.Wait()
		}
		require.LessOrEqual(t, o.memory.used.Load(), int64(maxQueuedBytes))
		require.Greater(t, o.memory.used.Load(), int64(maxQueuedBytes/2))
		close(accept)
		time.Sleep(time.Minute)
		synctest.Wait()
		requireInOrder(t, tt.received[1], 40)
		stop()
	})
}

// A new leader finds what its predecessors have not delivered in the table. It reads no more of it
// than fits, and at least one message for each receiver.
func TestOutboxBoundsTheBytesThatANewLeaderReads(t *testing.T) {
	for _, receivers := range []uint32{1, 40} {
		synctest.Test(t, func(t *testing.T) {
			const messages, size = 40, 512 << 10
			tt := newOutboxTable()
			for i := range uint32(messages) {
				for to := range receivers {
					tt.put(1+to, sized(i, size))
				}
			}
			cfg := tt.config(1 + receivers)
			accept := make(chan struct{})
			cfg.deliver = func(ctx context.Context, to uint32, d *machine.Deliver) error {
				<-accept
				return tt.deliver(ctx, to, d)
			}
			o := newOutbox(cfg)
			stop := runUntilStopped(t, o)
			synctest.Wait()
			used := int(o.memory.used.Load())
			close(accept)
			time.Sleep(time.Minute)
			synctest.Wait()
			for to := range receivers {
				requireInOrder(t, tt.received[1+to], messages)
			}
			stop()
			require.Greater(t, used, size)
			require.LessOrEqual(t, used, min(int(receivers)*maxQueuedBytes/2, outboxBytes+int(receivers)*(size+1<<10)))
		})
	}
}

func TestOutboxMemoryIsSharedAndBounded(t *testing.T) {
	m := NewOutboxMemory()
	require.True(t, m.reserve(outboxBytes-10))
	require.False(t, m.reserve(11))
	require.True(t, m.reserve(10))
	require.Zero(t, m.available())
	m.overdraw(100)
	require.Zero(t, m.available())
	m.release(outboxBytes + 100)
	require.Equal(t, outboxBytes, m.available())
}

// Many receivers that do not respond cost no more memory than a few: messages may have 32 MiB
// each. Small messages do not wait for them.
func TestOutboxBoundsTheBytesOfLargeMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const receivers, size = 40, 16 << 20
		tt := newOutboxTable()
		value := sized(0, size)
		for to := range uint32(receivers) {
			tt.put(1+to, value)
		}
		tt.put(1+receivers, numbered(0))
		cfg := tt.config(2 + receivers)
		accept := make(chan struct{})
		cfg.deliver = func(ctx context.Context, to uint32, d *machine.Deliver) error {
			if to <= receivers {
				<-accept
			}
			return tt.deliver(ctx, to, d)
		}
		o := newOutbox(cfg)
		stop := runUntilStopped(t, o)
		time.Sleep(time.Minute)
		require.LessOrEqual(t, o.memory.used.Load(), int64(outboxBytes))
		require.Greater(t, o.memory.used.Load(), int64(outboxBytes/2))
		require.Len(t, tt.received[1+receivers], 1)
		close(accept)
		time.Sleep(time.Minute)
		synctest.Wait()
		for to := range uint32(receivers) {
			require.Len(t, tt.received[1+to], 1)
		}
		require.Zero(t, o.memory.used.Load())
		stop()
		require.True(t, o.memory.tryLarge(outboxBytes), "nothing is being delivered")
	})
}

// A receiver without a leader delays the large messages to others only until the first attempt to reach it has failed.
func TestLargeMessagesDoNotWaitForReceiversWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lookup, messages, unreached, reached = 3 * time.Second, 20, 4, 5
		tt := newOutboxTable()
		large, value := sized(0, 40<<20), sized(0, 2<<20)
		for to := range uint32(unreached) {
			tt.put(1+to, large)
		}
		cfg := tt.config(1 + reached)
		var elected atomic.Bool
		cfg.deliver = func(ctx context.Context, to uint32, d *machine.Deliver) error {
			if to <= unreached && !elected.Load() {
				time.Sleep(lookup)
				return raftgroup.ErrNotLeader
			}
			return tt.deliver(ctx, to, d)
		}
		o := newOutbox(cfg)
		stop := runUntilStopped(t, o)
		time.Sleep(lookup / 2)
		for range messages {
			o.send(tt.put(reached, value))
		}
		begin := time.Now()
		for len(tt.snapshot(reached)) < messages && time.Since(begin) < time.Hour {
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("large messages to a partition with a leader were delivered after %s", time.Since(begin))
		require.Less(t, time.Since(begin), unreached*lookup+time.Second, "one attempt to reach each of them")
		elected.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		for to := range uint32(unreached) {
			require.Len(t, tt.received[1+to], 1)
		}
		stop()
		require.True(t, o.memory.tryLarge(outboxBytes), "nothing is being delivered")
	})
}

// Failures have metadata of any size, which counts like a value.
func TestOutboxBoundsTheBytesOfACommandOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 80
		tt := newOutboxTable()
		tt.closed = true
		cfg := tt.config(4)
		cfg.deliver = func(ctx context.Context, to uint32, d *machine.Deliver) error {
			data, err := codec.EncodeCommand(feature.Level4, d)
			if err == nil {
				err = checkCommandSize(feature.Level4, d, len(data))
			}
			if err != nil {
				return err
			}
			return tt.deliver(ctx, to, d)
		}
		o := newOutbox(cfg)
		stop := runUntilStopped(t, o)
		metadata := []journal.Metadata{{Key: "details", Value: strings.Repeat("x", 1<<20)}}
		for i := range messages {
			failure := &journal.Failure{Code: 500, Metadata: metadata}
			o.send(tt.put(1, &machine.Complete{Sink: machine.Sink{Completion: uint32(i), Type: journal.CallCompletion}, Result: journal.Result{Failure: failure}}))
		}
		time.Sleep(100 * time.Millisecond)
		tt.open()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		stop()
		requireInOrder(t, tt.received[1], messages)
	})
}

// A table that cannot be read for a moment delays messages, and loses none.
func TestOutboxReadsAgainAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		for i := range 3 {
			tt.put(1, numbered(uint32(i)))
		}
		var o *outbox
		cfg := tt.config(4)
		failed := false
		cfg.read = func(to uint32, from uint64, count, bytes int) (uint64, []machine.Message, bool, error) {
			if to == 1 && count > 1 && !failed {
				failed = true
				o.send(tt.put(1, numbered(3))) // another message is sent meanwhile
				return 0, nil, false, errors.New("read: I/O error")
			}
			return tt.read(to, from, count, bytes)
		}
		cfg.deliver = func(ctx context.Context, to uint32, d *machine.Deliver) error {
			tt.mu.Lock()
			gap := d.FirstSeq > tt.last[to]+1
			tt.mu.Unlock()
			if gap {
				return errors.New("the receiver refuses a gap")
			}
			return tt.deliver(ctx, to, d)
		}
		o = newOutbox(cfg)
		stop := runUntilStopped(t, o)
		time.Sleep(time.Hour)
		synctest.Wait()
		stop()
		require.True(t, failed)
		requireInOrder(t, tt.received[1], 4)
	})
}
