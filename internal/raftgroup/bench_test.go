package raftgroup

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/varint"
)

// nullMachine applies without keeping anything, so that the benchmark measures
// the group.
type nullMachine struct{ at atomic.Pointer[Position] }

func (m *nullMachine) Apply(entries []Entry) ([]any, error) {
	results := make([]any, len(entries))
	for i, e := range entries {
		n := 0
		for r := (varint.Reader{Rest: e.Data}); len(r.Rest) > 0; n++ {
			r.Bytes()
		}
		results[i] = make([]uint64, n)
	}
	last := entries[len(entries)-1]
	m.at.Store(&Position{Index: last.Index, Term: last.Term})
	return results, nil
}

func (m *nullMachine) Applied() Position {
	if at := m.at.Load(); at != nil {
		return *at
	}
	return Position{}
}

func (m *nullMachine) Flush() (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}
func (m *nullMachine) Export() (Exporter, error) { return nil, errPlanted }
func (m *nullMachine) Import() (Importer, error) { return nil, errPlanted }

// BenchmarkPropose proposes commands of 300 bytes from 64 callers, and from one,
// and reports the processor time of the whole process per command.
func BenchmarkPropose(b *testing.B) {
	for _, c := range []struct{ groups, callers int }{{1, 1}, {1, 64}, {8, 64}} {
		b.Run(fmt.Sprintf("groups=%d/callers=%d", c.groups, c.callers), func(b *testing.B) {
			benchmarkPropose(b, c.groups, c.callers)
		})
	}
}

func benchmarkPropose(b *testing.B, groups, callers int) {
	n := startNode(b, b.TempDir(), "")
	defer n.stop()
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	var proposers []*Proposer[uint64]
	for id := range groups {
		g, err := Open(n.config(uint32(id), &nullMachine{}, n.voter()))
		require.NoError(b, err)
		defer func() { require.NoError(b, g.Shutdown(context.Background())) }()
		waitLeader(b, g)
		require.NoError(b, g.Barrier(ctx))
		p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal})
		require.NoError(b, err)
		running.Go(func() { _ = p.Run(ctx) })
		proposers = append(proposers, p)
	}
	command := make([]byte, 300)
	var left atomic.Int64
	left.Store(int64(b.N))
	before := processorTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			c := &benchCaller{answer: make(chan error, 1)}
			p := proposers[i%len(proposers)]
			for left.Add(-1) >= 0 {
				if err := p.Submit(command, 0, c); err != nil {
					b.Error(err)
					return
				}
				if err := <-c.answer; err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	cancel()
	running.Wait()
}

type benchCaller struct{ answer chan error }

func (c *benchCaller) Complete(_ uint64, err error) { c.answer <- err }

func processorTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
