package raftgroup

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// queued is what a test knows of a command.
type queued struct {
	number, size int
	yielding     bool
	after        int // yielding: prompt commands submitted before it
}

// TestQueueKeepsTheOrderOfEachKind takes entries from a queue while commands arrive, and has further commands join
// some entries.
func TestQueueKeepsTheOrderOfEachKind(t *testing.T) {
	const maxCommands, maxBytes = 8, 100
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var (
			q           commandQueue[int]
			submitted   []queued
			entries     [][]queued
			prompt      int // submitted
			share       = rng.IntN(5)
			next        = map[bool]int{} // index in submitted, of the next command of each kind
			taken       = map[bool]int{}
			wasEligible bool
		)
		submit := func() {
			c := queued{number: len(submitted), size: 1 + rng.IntN(30), yielding: rng.IntN(4) < share, after: prompt}
			if c.yielding {
				c.size = 1 + rng.IntN(150)
			} else {
				prompt++
			}
			submitted = append(submitted, c)
			q.add(pendingCommand[int]{size: c.size, yielding: c.yielding, data: []byte{byte(c.number >> 8), byte(c.number)}})
		}
		eligible := func() bool {
			return len(q.yielding.commands) > 0 && q.yielding.commands[0].after <= q.prompt.taken()
		}
		// extend moves commands from the queue to an entry, and checks their order.
		extend := func(entry []queued) []queued {
			size := 0
			for _, c := range entry {
				size += c.size
			}
			s := q.fitting(len(entry), size, maxCommands, maxBytes)
			batch := q.appendTo(nil, s)
			q.drop(s)
			require.Len(t, batch, s.prompt+s.yielding)
			for _, b := range batch {
				c := submitted[int(b.data[0])<<8|int(b.data[1])]
				for submitted[next[c.yielding]].yielding != c.yielding {
					next[c.yielding]++
				}
				require.Equal(t, next[c.yielding], c.number, "seed %d: the order of a kind", seed)
				next[c.yielding]++
				if c.yielding {
					require.LessOrEqual(t, c.after, taken[false], "seed %d: it follows what was submitted before it", seed)
				}
				taken[c.yielding]++

				entry = append(entry, c)
			}
			total := 0
			for _, c := range entry {
				total += c.size
			}
			require.LessOrEqual(t, len(entry), maxCommands)
			require.True(t, len(entry) == 1 || total <= maxBytes)
			return entry
		}
		for range 200 {
			for range rng.IntN(6) {
				submit()
			}
			if q.len() == 0 {
				continue
			}
			before, may := taken[true], eligible()
			entry := extend(nil)
			require.NotEmpty(t, entry)
			if may && wasEligible {
				require.Greater(t, taken[true], before, "seed %d: a yielding command is in the second entry at the latest", seed)
			}
			wasEligible = may && taken[true] == before
			for range rng.IntN(3) {
				submit()
			}
			if rng.IntN(2) == 0 {
				entry = extend(entry)
				wasEligible = wasEligible && taken[true] == before
			}
			entries = append(entries, entry)
			require.Equal(t, q.bytes() == 0, q.len() == 0)
		}
		for q.len() > 0 {
			entries = append(entries, extend(nil))
		}
		n := 0
		for _, e := range entries {
			n += len(e)
		}
		require.Len(t, submitted, n)
		require.True(t, q.reached(q.end()))
	}
}

// What is submitted later overtakes yielding commands, of which few entries are in flight.
func TestCommandsOvertakeYieldingOnes(t *testing.T) {
	g, storage := heldGroup(t)
	seal := &ordered{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, MaxBatchCommands: 2})
	require.NoError(t, err)
	defer run(t, p)()
	var o outcomes
	yielding := func(commands string) {
		for _, c := range strings.Split(commands, "") {
			o.wg.Add(1)
			require.NoError(t, p.SubmitYielding([]byte(c), 0, &o))
		}
	}
	write := storage.Hold()
	release := sync.OnceFunc(func() { close(write.Released) })
	defer release()
	o.expect(t, p, []byte("1"))
	<-write.Arrived
	yielding("abcdefghij")
	require.Eventually(t, func() bool { return len(seal.get()) >= 3 }, time.Minute, time.Millisecond)
	for range 100 {
		runtime.Gosched()
	}
	require.Equal(t, "1ab", seal.get(), "two entries are in flight")
	o.expect(t, p, []byte("2"))
	o.expect(t, p, []byte("3"))
	o.expect(t, p, []byte("4"))
	o.wg.Add(1)
	require.NoError(t, p.SubmitBulk(Bulk{Size: 1, Ordered: true, Encode: func() ([]byte, error) { return []byte("B"), nil }}, &o))
	release()
	o.wg.Wait()
	require.Empty(t, o.errs)
	order := seal.get()
	require.Less(t, strings.Index(order, "2"), strings.Index(order, "e"))
	require.True(t, strings.HasSuffix(order, "B"), "%s: an ordered bulk command follows all commands", order)
}

// Yielding commands take half of the queue.
func TestYieldingCommandsLeaveRoom(t *testing.T) {
	g, _ := aloneGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, maxQueueCommands: 6, maxQueueBytes: 100})
	require.NoError(t, err)
	var o outcomes
	o.wg.Add(1)
	require.NoError(t, p.SubmitYielding(make([]byte, 60), 0, &o), "the first one in any case")
	require.False(t, p.HasRoom(1, true))
	require.ErrorIs(t, p.SubmitYielding(nil, 0, &o), ErrOverloaded)
	require.True(t, p.HasRoom(40, false))
	o.expect(t, p, make([]byte, 8))
	require.True(t, p.HasRoom(32, false))
	require.False(t, p.HasRoom(33, false), "the bound on the bytes of both")
	for range 4 {
		o.expect(t, p, make([]byte, 8))
	}
	require.False(t, p.HasRoom(0, false))
	require.ErrorIs(t, p.Submit(nil, 0, &o), ErrOverloaded)
	run(t, p)()
	o.wg.Wait()
}

// A command of any size is accepted while none of its kind waits.
func TestALargeCommandIsAcceptedIfNoneOfItsKindWaits(t *testing.T) {
	for _, yielding := range []bool{false, true} {
		g, _ := aloneGroup(t)
		p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, maxQueueCommands: 6, maxQueueBytes: 100})
		require.NoError(t, err)
		var o outcomes
		o.wg.Add(2)
		first, second := p.Submit, p.SubmitYielding
		if !yielding {
			first, second = second, first
		}
		require.NoError(t, first(make([]byte, 1), 0, &o))
		require.True(t, p.HasRoom(200, yielding))
		require.NoError(t, second(make([]byte, 200), 0, &o))
		run(t, p)()
		o.wg.Wait()
	}
}

// While prompt commands fill every entry, yielding ones get a part of each, or of every second entry if they are large.
func TestFullEntriesHaveYieldingCommands(t *testing.T) {
	for _, prompt := range []int{200, 10 << 10} {
		for _, size := range []int{16 << 10, 200 << 10} {
			var q commandQueue[int]
			for range 100 {
				q.add(pendingCommand[int]{size: size, yielding: true})
			}
			entries, alone := 0, 0
			for ; len(q.yielding.commands) > 0; entries++ {
				require.Less(t, entries, 1000)
				for len(q.prompt.commands) < 2*maxBatchCommands {
					q.add(pendingCommand[int]{size: prompt})
				}
				s := q.fitting(0, 0, maxBatchCommands, maxBatchBytes)
				if s.yielding == 0 {
					alone++
				}
				q.drop(s)
			}
			if size == 16<<10 {
				require.LessOrEqual(t, entries, 100/4+1)
			} else {
				require.Equal(t, entries/2, alone)
			}
		}
	}
}

// Commands of both kinds join an entry in the order of the queue, which keeps no reference to them.
func TestYieldingCommandsJoinAnEntry(t *testing.T) {
	g, j := aloneGroup(t)
	var (
		p    *Proposer[uint64]
		o    outcomes
		seal countingSeal
	)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealHook(&seal, func() {
		o.expect(t, p, []byte("2"))
		o.wg.Add(1)
		require.NoError(t, p.SubmitYielding([]byte("a"), 0, &o))
		o.expect(t, p, []byte("3"))
	})})
	require.NoError(t, err)
	o.expect(t, p, []byte("1"))
	defer run(t, p)()
	o.wg.Wait()
	require.Empty(t, o.errs)
	require.Equal(t, []int{1, 4}, seal.sizes)
	commands, err := j.commands()
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3", "a"}, commands)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.joining[:cap(p.joining)] {
		require.Nil(t, c.data)
	}
}
