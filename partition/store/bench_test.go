package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU reports the CPU time of the process per operation, including flushes and
// compactions.
func reportCPU(b *testing.B, from time.Duration) {
	b.ReportMetric(float64((cpuTime()-from).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// scatteredID returns the ID of the n-th invocation; IDs are not in order of n.
func scatteredID(n uint64) ids.Invocation {
	n *= 0x9e3779b97f4a7c15
	var u [16]byte
	binary.BigEndian.PutUint64(u[:], n*3)
	return ids.NewInvocation(n, u)
}

func sampleInvocation(id ids.Invocation, n uint64) *machine.Invocation {
	const now = 1700000000000
	return &machine.Invocation{
		ID: id, Target: machine.Target{Service: "Greeter", Handler: "greet"}, Status: machine.Invoked,
		Retention: machine.Retention{Completion: 86400000, Journal: 86400000}, ServerVersion: "1.0.0",
		CreatedAt: now, ModifiedAt: now, RunningAt: now, ProgressAt: now, Attempt: n, Length: 1, Commands: 1,
	}
}

var payload = fmt.Appendf(nil, "%0200d", 12345)

// invoke, finish and purge perform the reads and writes of the commits of an invocation.
func invoke(s machine.State, id ids.Invocation, n uint64) {
	inv, err := s.Invocation(id)
	if inv != nil || err != nil {
		panic("known id")
	}
	s.AppendEntry(id, 0, journal.Entry{Type: journal.Input, Payload: payload, AppendedAt: 1700000000000})
	s.PutInvocation(sampleInvocation(id, n))
}

func finish(s machine.State, id ids.Invocation) {
	inv, err := s.Invocation(id)
	if inv == nil || err != nil {
		panic("unknown id")
	}
	s.AppendEntry(id, 1, journal.Entry{Type: journal.Output, Payload: payload, AppendedAt: 1700000000001})
	inv.Length, inv.Commands, inv.Status = 2, 2, machine.Completed
	inv.Result = &journal.Result{Value: payload[:100]}
	inv.Pin = machine.Pin{Deployment: "dp_10000000000000000000000", Protocol: 6}
	s.PutTimer(machine.Timer{At: 1700000060000, Kind: machine.TimerPurge, ID: id})
	s.PutInvocation(inv)
}

func purge(s machine.State, id ids.Invocation) {
	timer := machine.Timer{At: 1700000060000, Kind: machine.TimerPurge, ID: id}
	if ok, err := s.HasTimer(timer); !ok || err != nil {
		panic("no timer")
	}
	s.DeleteTimer(timer)
	inv, err := s.Invocation(id)
	if inv == nil || err != nil {
		panic("unknown id")
	}
	s.DeleteJournal(id, inv.Length)
	s.DeleteInvocation(id)
}

// BenchmarkInvocationLifecycle performs the writes of invocations without steps: Invoke, then
// Output with End, and the purge of older ones. Each batch is half of one, half of the other.
func BenchmarkInvocationLifecycle(b *testing.B) {
	for _, purging := range []bool{false, true} {
		for _, size := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("batch=%d/purge=%v", size, purging), func(b *testing.B) { benchLife(b, size, purging) })
		}
	}
}

func benchLife(b *testing.B, size int, purging bool) {
	db := openAt(b, b.TempDir())
	defer db.Close()
	p := partition(b, db, 1)
	index, began, purged := uint64(0), uint64(0), uint64(0)
	lives := func(n int) {
		for done := 0; done < n; done += size {
			index++
			txn := p.Begin()
			for range size {
				invoke(txn, scatteredID(began), began)
				began++
			}
			require.NoError(b, txn.Commit(index, 1))
			index++
			txn = p.Begin()
			for i := range uint64(size) {
				finish(txn, scatteredID(began-1-i))
			}
			for purging && purged+30_000 < began {
				purge(txn, scatteredID(purged))
				purged++
			}
			require.NoError(b, txn.Commit(index, 1))
		}
	}
	lives(40_000)
	from := cpuTime()
	b.ReportAllocs()
	b.ResetTimer()
	lives(b.N)
	b.StopTimer()
	reportCPU(b, from)
}

// BenchmarkUnknownInvocation looks up a missing invocation among 100,000 completed ones.
func BenchmarkUnknownInvocation(b *testing.B) {
	db := openAt(b, b.TempDir())
	defer db.Close()
	p := partition(b, db, 1)
	const n = 100_000
	fillWith(b, p, n, finish)
	from := cpuTime()
	b.ResetTimer()
	for i := range b.N {
		if i%16 == 0 {
			p.txn.reset() // as at the end of a batch
		}
		inv, err := p.Begin().Invocation(scatteredID(uint64(n + i)))
		if inv != nil || err != nil {
			b.Fatal("found")
		}
	}
	b.StopTimer()
	reportCPU(b, from)
}

// fillWith creates n invocations in batches and calls then for each.
func fillWith(b *testing.B, p *Partition, n uint64, then func(machine.State, ids.Invocation)) {
	index, _ := p.Applied()
	for i := uint64(0); i < n; i += 100 {
		for _, do := range []func(*Txn, uint64){
			func(t *Txn, n uint64) { invoke(t, scatteredID(n), n) },
			func(t *Txn, n uint64) { then(t, scatteredID(n)) },
		} {
			txn := p.Begin()
			for j := range uint64(100) {
				do(txn, i+j)
			}
			index++
			require.NoError(b, txn.Commit(index, 1))
		}
	}
}

func suspend(s machine.State, id ids.Invocation) {
	inv, _ := s.Invocation(id)
	inv.Status, inv.Await = machine.Suspended, &journal.Future{Signals: []uint32{1}}
	s.PutInvocation(inv)
}

// BenchmarkLiveScan reads 100,000 suspended invocations, as a new leader does.
func BenchmarkLiveScan(b *testing.B) {
	db := openAt(b, b.TempDir())
	defer db.Close()
	p := partition(b, db, 1)
	const n = 100_000
	fillWith(b, p, n, suspend)
	flush(b, db)
	from := cpuTime()
	for b.Loop() {
		v, count := p.View(), 0
		for _, err := range v.Live() {
			require.NoError(b, err)
			count++
		}
		require.Equal(b, n, count)
		v.Close()
	}
	reportCPU(b, from)
}

// BenchmarkLeader performs the reads of a leader, with 100,000 suspended invocations.
func BenchmarkLeader(b *testing.B) {
	db := openAt(b, b.TempDir())
	defer db.Close()
	p := partition(b, db, 1)
	const n = 100_000
	fillWith(b, p, n, suspend)
	stateful := machine.Object{Service: "Counter", Key: "a"}
	txn := p.Begin()
	for i := range 10 {
		txn.PutValue(stateful, fmt.Append(nil, "key", i), payload)
	}
	index, _ := p.Applied()
	require.NoError(b, txn.Commit(index+1, 1))
	flush(b, db)

	run := func(name string, read func(v *View, i int)) {
		b.Run(name, func(b *testing.B) {
			from := cpuTime()
			for i := range b.N {
				v := p.View()
				read(v, i)
				v.Close()
			}
			reportCPU(b, from)
		})
	}
	run("view", func(*View, int) {})
	run("no-values", func(v *View, i int) {
		_, _, _ = v.Values(machine.Object{Service: "Counter", Key: fmt.Sprint(i)}, 1<<20)
	})
	run("ten-values", func(v *View, _ int) { _, _, _ = v.Values(stateful, 1<<20) })
	run("invocation", func(v *View, i int) { _, _ = v.Invocation(scatteredID(uint64(i*7919) % n)) })
	run("journal", func(v *View, i int) { _, _, _ = v.Journal(scatteredID(uint64(i*7919)%n), 1, math.MaxInt) })
}

// BenchmarkGap finds the first waiting invocation after as many that have left the queue.
func BenchmarkGap(b *testing.B) {
	for _, gap := range []uint64{0, 1000, 100_000} {
		b.Run(fmt.Sprint(gap), func(b *testing.B) {
			db := openAt(b, b.TempDir())
			defer func() { require.NoError(b, db.Close()) }()
			p := partition(b, db, 0)
			o := machine.Object{Service: "Counter", Key: "k"}
			index := uint64(0)
			commit := func(write func(s *Txn)) {
				txn := p.Begin()
				write(txn)
				index++
				require.NoError(b, txn.Commit(index, 1))
			}
			for from := uint64(0); from <= gap; from += 1000 {
				commit(func(s *Txn) {
					for seq := from; seq < min(from+1000, gap+1); seq++ {
						s.PutWaiting(o, seq, testID(1))
					}
				})
			}
			for from := uint64(0); from < gap; from += 1000 {
				commit(func(s *Txn) {
					for seq := from; seq < min(from+1000, gap); seq++ {
						s.DeleteWaiting(o, seq)
					}
				})
			}
			for b.Loop() {
				txn := p.Begin()
				seq, _, err := txn.FirstWaiting(o, 0, gap+1)
				require.NoError(b, err)
				require.Equal(b, gap, seq)
				txn.Discard()
			}
		})
	}
}
