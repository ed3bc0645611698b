package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition/journal"
	"platform/partition/machine"
)

// A command is taken once: by the proposer, or by the end of the request.
func TestAWaitingCommandIsReleasedWhenItsRequestEnds(t *testing.T) {
	inv := &machine.Invoke{Input: make([]byte, 1)}
	w := &waitingCommand{c: inv}
	ctx, cancel := context.WithCancel(t.Context())
	released := make(chan machine.Command)
	context.AfterFunc(ctx, func() { released <- w.take() })
	cancel()
	require.Equal(t, machine.Command(inv), <-released)
	require.Nil(t, w.take())
}

// Progress has at most the priority of the earlier progress of its invocation.
func TestProgressDoesNotOvertakeEarlierProgress(t *testing.T) {
	l := new(leadership)
	id, other := ids.NewInvocation(1, [16]byte{1}), ids.NewInvocation(1, [16]byte{2})
	priorities := func(c machine.Command) (out []priority) {
		for _, size := range []int{yieldingCommand - 1, yieldingCommand, bulkCommand - 1, bulkCommand} {
			out = append(out, l.priorityOf(c, size))
		}
		return out
	}
	bySize := []priority{prompt, yielding, yielding, bulk}
	require.Equal(t, bySize, priorities(&machine.Progress{ID: id}))
	require.Equal(t, bySize, priorities(&machine.Invoke{ID: id}))
	require.Equal(t, []priority{prompt, prompt, prompt, prompt}, priorities(&machine.Kill{Target: id}))

	l.yieldProgress.add(id, 1)
	require.Equal(t, []priority{yielding, yielding, yielding, bulk}, priorities(&machine.Progress{ID: id}))
	l.bulkProgress.add(id, 1)
	l.bulkProgress.add(id, 1)
	require.Equal(t, []priority{bulk, bulk, bulk, bulk}, priorities(&machine.Progress{ID: id}))
	require.Equal(t, bySize, priorities(&machine.Progress{ID: other}))
	require.Equal(t, bySize, priorities(&machine.Invoke{ID: id}))
	l.bulkProgress.add(id, -1)
	require.Equal(t, bulk, l.priorityOf(&machine.Progress{ID: id}, 1))
	l.bulkProgress.add(id, -1)
	require.Equal(t, yielding, l.priorityOf(&machine.Progress{ID: id}, 1))
	l.yieldProgress.add(id, -1)
	require.Equal(t, bySize, priorities(&machine.Progress{ID: id}))
	require.Empty(t, l.bulkProgress.byID)
	require.Empty(t, l.yieldProgress.byID)
}

// TestLargeCommandsOccupyAPartition requires that a partition counts as occupied from the first
// large command until a while after the last one.
func TestLargeCommandsOccupyAPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newLargeCommands()
		time.Sleep(time.Hour)
		require.False(t, c.occupying())
		c.begin()
		c.begin()
		c.end()
		time.Sleep(time.Minute)
		require.True(t, c.occupying(), "one is in progress")
		c.end()
		time.Sleep(occupiedAfter - time.Nanosecond)
		require.True(t, c.occupying())
		time.Sleep(time.Nanosecond)
		require.False(t, c.occupying())
	})
}

// TestLargeInvocationsOccupyTheirPartition requires that a large input and a large result each
// occupy the partition, and that smaller ones do not.
func TestLargeInvocationsOccupyTheirPartition(t *testing.T) {
	sizes := restate.NewService("Sizes").
		Handler("of", restate.NewServiceHandler(func(_ restate.Context, s string) (int, error) { return len(s), nil })).
		Handler("text", restate.NewServiceHandler(func(_ restate.Context, n int) (string, error) { return strings.Repeat("a", n), nil }))
	large := strconv.Itoa(LargeCommand)
	for name, inv := range map[string]*machine.Invoke{
		"input":  request("Sizes", "of", `"`+strings.Repeat("a", LargeCommand)+`"`),
		"result": request("Sizes", "text", large),
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestNode(t, 1, sizes)
			p := c.partitions[0]
			small := request("Sizes", "of", `"`+strings.Repeat("a", LargeCommand/2)+`"`)
			ended, _, err := p.Call(t.Context(), small)
			require.NoError(t, err)
			require.Nil(t, ended.Result.Failure)
			_, occupied := p.Backlog()
			require.False(t, occupied)
			called := make(chan error, 1)
			go func() {
				var err error
				ended, _, err = p.Call(t.Context(), inv)
				called <- err
			}()
			require.Eventually(t, func() bool { // and for a moment afterwards, which a busy machine can exceed
				_, occupied := p.Backlog()
				return occupied
			}, time.Minute, time.Millisecond)
			require.NoError(t, <-called)
			require.Nil(t, ended.Result.Failure)
		})
	}
}

// TestProgressIsStoredInTheOrderOfItsSubmission submits progress of all sizes, while leadership ends at some point: of each
// invocation, only the last commands are missing.
func TestProgressIsStoredInTheOrderOfItsSubmission(t *testing.T) {
	const (
		invocations, commands = 12, 8
		most                  = 150 // rounds
	)
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Proposals.Bulk = raftgroup.NewBulkGate(8 << 20) })
	p := c.partitions[0]
	small, medium, large := make([]byte, 100), make([]byte, 3*yieldingCommand), make([]byte, bulkCommand)
	all := make([]int, commands)
	for i := range all {
		all[i] = i
	}
	partial := 0
	for begin, round := time.Now(), uint64(0); round < most && time.Since(begin) < 10*time.Second; round++ {
		rng := rand.New(rand.NewPCG(round, 0))
		var l *leadership
		require.Eventually(t, func() bool {
			var err error
			l, err = p.leader()
			return err == nil
		}, time.Minute, time.Millisecond)
		var (
			mu      sync.Mutex // covers the fields below
			ended   int
			stored  [invocations][]int // in the order of the log
			handOff = int(round) % (invocations * commands)
			wg      sync.WaitGroup
		)
		for j := range stored {
			stored[j] = []int{}
		}
		wg.Add(invocations * commands)
		for n := range invocations * commands {
			j, i := n%invocations, n/invocations
			payload := [][]byte{small, small, medium, medium, medium, large}[rng.IntN(6)]
			id := ids.NewInvocation(1, [16]byte{byte(round), byte(j)})
			attemptSource{l}.Propose(&machine.Progress{ID: id, Attempt: 1, Steps: []machine.Step{{Kind: machine.StepCommand, Type: journal.Run, Payload: payload}}},
				func(_ machine.Outcome, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						stored[j] = append(stored[j], i)
					}
					if ended++; ended == handOff {
						wg.Go(func() { p.handOver(t.Context()) })
					}
					wg.Done()
				})
		}
		wg.Wait()
		if handOff > 0 {
			<-l.left
		}
		require.Empty(t, l.yieldProgress.byID)
		require.Empty(t, l.bulkProgress.byID)
		for j := range stored {
			require.Equal(t, all[:len(stored[j])], stored[j], "round %d: the stored progress of invocation %d", round, j)
			if n := len(stored[j]); n > 0 && n < commands {
				partial++
			}
		}
	}
	t.Logf("leadership ended after a part of the progress of %d invocations", partial)
}

// The leader could write a larger command than those, but not send it to followers.
func TestCommandsAboveTheLimitAreNotProposed(t *testing.T) {
	value := make([]byte, limits.Command)
	large := &machine.Deliver{From: 1, FirstSeq: 1, Messages: []machine.Message{&machine.Complete{Result: journal.Result{Value: value}}}}
	progress := &machine.Progress{Steps: []machine.Step{{Kind: machine.StepCommand, Type: journal.Output, Payload: value}}}
	for level := feature.Level1; level <= feature.Newest; level++ {
		l := &leadership{p: &Partition{cfg: Config{Level: func() feature.Level { return level }}}}
		for _, c := range []machine.Command{&machine.Invoke{Input: value}, progress} {
			_, err := l.encode(c)
			require.ErrorIs(t, err, raftgroup.ErrTooLarge)
			require.ErrorIs(t, l.encodable(c, 2*limits.Command), raftgroup.ErrTooLarge, "known before the next progress is proposed")
		}
		_, err := l.encode(large)
		require.Equal(t, level == feature.Level1, errors.Is(err, raftgroup.ErrTooLarge), "a message of the first release")
	}
	require.NoError(t, checkCommandSize(feature.Level1, progress, limits.Command))
	require.Error(t, checkCommandSize(feature.Newest, large, limits.StoredCommand+1))
}
