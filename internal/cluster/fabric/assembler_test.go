package fabric

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

func piece(sequence uint64, size int, more bool) *node.PartitionFrame {
	return &node.PartitionFrame{Sequence: sequence, Piece: make([]byte, size), More: more}
}

// A message that is too large is rejected without affecting other messages of the stream.
func TestIncompleteMessagesAreBounded(t *testing.T) {
	p := newAssembler(nil)
	_, _, err := p.add(piece(1, maxAssembledMessage, true))
	require.NoError(t, err)
	_, _, err = p.add(piece(2, 100, true))
	require.NoError(t, err)
	_, _, err = p.add(piece(1, 1, true))
	require.ErrorIs(t, err, raftgroup.ErrTooLarge)
	require.Equal(t, 100, p.bytes)
	for _, more := range []bool{true, false} { // its remaining pieces
		whole, done, err := p.add(piece(1, 50, more))
		require.True(t, whole == nil && !done && err == nil)
	}
	whole, done, err := p.add(piece(2, 10, false))
	require.True(t, done && err == nil)
	require.Len(t, whole, 110)

	for sequence := uint64(10); sequence < 14; sequence++ {
		_, _, err = p.add(piece(sequence, maxIncompleteBytes/4, true))
		require.NoError(t, err)
	}
	_, _, err = p.add(piece(14, 1, true))
	require.ErrorIs(t, err, raftgroup.ErrTooLarge)
	p.drop(10)
	_, _, err = p.add(piece(15, 1, true))
	require.NoError(t, err)
	require.Len(t, p.rejected, 1)
}

func TestTooLargeRequestFailsAlone(t *testing.T) {
	p := newFake(true)
	release := make(chan struct{})
	p.await = func(ctx context.Context, _ ids.Invocation) (partition.Ending, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return partition.Ending{}, ctx.Err()
	}
	p.invoke = func(_ context.Context, inv *machine.Invoke) (machine.Outcome, error) {
		return machine.Outcome{}, raftgroup.ErrTooLarge
	}
	r, _ := pair(t, p)
	waited := make(chan error, 1)
	go func() {
		_, err := r.Await(t.Context(), invocationID(1))
		waited <- err
	}()
	inv := invocation(2)
	inv.Input = make([]byte, limits.Response)
	_, err := r.Invoke(t.Context(), inv)
	require.ErrorIs(t, err, raftgroup.ErrTooLarge)
	require.NotErrorIs(t, err, raftgroup.ErrNotLeader, "not retried elsewhere")
	inv.Input = nil
	_, err = r.Invoke(t.Context(), inv)
	require.ErrorIs(t, err, raftgroup.ErrTooLarge, "the leader's error is preserved")
	close(release)
	require.NoError(t, <-waited)
}

func TestTooLargeResponseFailsAlone(t *testing.T) {
	p := newFake(true)
	p.state = func(context.Context, machine.Object, int) ([]machine.StateEntry, bool, error) {
		return []machine.StateEntry{{Key: []byte("k"), Value: make([]byte, limits.Response)}}, true, nil
	}
	p.invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) { return machine.Outcome{}, nil }
	r, _ := pair(t, p)
	_, _, err := r.State(t.Context(), machine.Object{}, 1<<30)
	require.ErrorContains(t, err, "too large to be sent")
	_, err = r.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
}

// Only a bounded number of large messages is encoded and sent concurrently; all arrive.
func TestConcurrentLargeMessagesAreBounded(t *testing.T) {
	b := &batch{}
	value := bytes.Repeat([]byte{7}, 5<<20)
	most := 0
	for sequence := range uint64(40) {
		b.add(&outgoing{frame: &node.PartitionFrame{Sequence: sequence, Response: &node.PartitionResponse{
			Entries: [][]byte{value},
		}}})
		most = max(most, b.active)
	}
	p, got := newAssembler(nil), 0
	for len(b.large) > 0 {
		b.addPiece()
		for _, f := range b.Frames {
			_, done, err := p.add(f)
			require.NoError(t, err)
			if done {
				got++
			}
		}
		most = max(most, p.bytes)
		b.Frames = b.Frames[:0]
	}
	require.Equal(t, 40, got)
	require.LessOrEqual(t, most, activeBytes)
	require.Zero(t, b.active)
}

func TestLargeResponsesAllArrive(t *testing.T) {
	p := newFake(true)
	large := bytes.Repeat([]byte("x"), 6<<20)
	p.await = func(context.Context, ids.Invocation) (partition.Ending, error) {
		return partition.Ending{Result: journal.Result{Value: large}}, nil
	}
	r, _ := pair(t, p)
	var g sync.WaitGroup
	for range 20 {
		g.Go(func() {
			e, err := r.Await(t.Context(), invocationID(1))
			if err != nil || len(e.Result.Value) != len(large) {
				t.Errorf("result of %d bytes: %v", len(e.Result.Value), err)
			}
		})
	}
	g.Wait()
}

// A caller that no longer waits for a large response must not leave the pieces that have arrived in memory.
func TestPiecesOfAbandonedResponsesAreDropped(t *testing.T) {
	in := &inbound{out: newOutbound(), running: map[uint64]context.CancelFunc{}}
	l, b := newLink(nil), &batch{}
	incomplete := newAssembler(nil)
	exchange := func() {
		in.out.fill(b)
		for _, f := range b.Frames {
			require.NoError(t, l.deliver(f, incomplete))
		}
		b.Frames, b.size = b.Frames[:0], 0
	}
	response := &node.PartitionResponse{Entries: [][]byte{make([]byte, 5<<20)}}
	in.respond(t.Context(), 1, response, 0)
	in.respond(t.Context(), 2, response, 0)
	for range 4 {
		exchange()
	}
	require.NotZero(t, incomplete.bytes)
	in.cancelRequest(1)
	for range 100 {
		exchange()
	}
	require.Empty(t, b.large)
	require.Zero(t, incomplete.bytes)
}
