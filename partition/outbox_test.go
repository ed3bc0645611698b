package partition

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/partition/journal"
	"platform/partition/machine"
)

// outboxTable is the outbox table of a partition, and the receivers behind it.
type outboxTable struct {
	mu       sync.Mutex
	first    map[uint32]uint64 // lowest sequence number held
	rows     map[uint32][]machine.Message
	received map[uint32][]machine.Message
	last     map[uint32]uint64
	failures int // deliveries that will fail, after having taken effect or not
	commands int
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

func (tt *outboxTable) read(to uint32, from uint64, limit int) (uint64, []machine.Message, error) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	from = max(from, tt.first[to])
	skip := min(int(from-tt.first[to]), len(tt.rows[to]))
	rows := tt.rows[to][skip:]
	return from, append([]machine.Message(nil), rows[:min(limit, len(rows))]...), nil
}

func (tt *outboxTable) deliver(_ context.Context, to uint32, d *machine.Deliver) error {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	tt.commands++
	fail := tt.failures > 0 && rand.IntN(2) == 0
	if fail {
		tt.failures--
		if rand.IntN(2) == 0 {
			return errors.New("lost on the way")
		}
	}
	for i, m := range d.Messages {
		switch seq := d.FirstSeq + uint64(i); {
		case seq <= tt.last[to]: // had it
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

func (tt *outboxTable) acknowledge(to uint32, upto uint64) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	n := upto - tt.first[to] + 1
	tt.rows[to] = tt.rows[to][n:]
	tt.first[to] += n
}

func (tt *outboxTable) left(to uint32) int {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return len(tt.rows[to])
}

func runOutbox(t *testing.T, tt *outboxTable) *outbox {
	o := newOutbox(0, 4)
	o.read, o.deliver, o.acknowledge, o.log = tt.read, tt.deliver, tt.acknowledge, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, o.Run(ctx)) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return o
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

func TestOutboxShipsWhatTheTableHeldBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		for i := range 300 {
			tt.put(2, numbered(uint32(i)))
		}
		runOutbox(t, tt)
		time.Sleep(time.Second)
		synctest.Wait()
		requireInOrder(t, tt.received[2], 300)
		require.Zero(t, tt.left(2), "delivered messages are acknowledged after a while")
	})
}

func TestOutboxKeepsOrderThroughFailuresAndCrowds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := newOutboxTable()
		tt.failures = 200
		tt.put(1, numbered(0))
		o := runOutbox(t, tt)
		const crowd = 3*shipQueue + 7
		for i := 1; i < crowd; i++ {
			o.send(tt.put(1, numbered(uint32(i))))
			if i%997 == 0 {
				time.Sleep(3 * time.Millisecond)
			}
		}
		o.send(tt.put(3, numbered(0)))
		time.Sleep(time.Hour)
		synctest.Wait()
		requireInOrder(t, tt.received[1], crowd)
		requireInOrder(t, tt.received[3], 1)
		require.Zero(t, tt.left(1))
		require.Zero(t, tt.left(3))
	})
}
