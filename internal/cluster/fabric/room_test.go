package fabric

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/node"
)

// numbered returns a value of 1 MiB that contains n.
func numbered(n uint64) []byte {
	v := make([]byte, 1<<20)
	binary.BigEndian.PutUint64(v[len(v)-8:], n)
	return v
}

// A node that does not read costs the leader a bounded amount of memory, however many of its
// requests have a large result. All of them arrive once it reads.
func TestResultsForANodeThatDoesNotReadAreBounded(t *testing.T) {
	const requests = 300
	var reads, called atomic.Int64
	var results sync.Map // by ID
	result := func(id ids.Invocation) partition.Ending {
		n, _ := results.Load(id)
		return partition.Ending{Result: journal.Result{Value: numbered(n.(uint64))}}
	}
	p := newFake(true)
	p.call = func(_ context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
		called.Add(1)
		return result(inv.ID), machine.Outcome{Code: machine.Existing, Own: true}, nil
	}
	p.await = func(_ context.Context, id ids.Invocation) (partition.Ending, error) {
		reads.Add(1)
		return result(id), nil
	}
	server := NewServer(ServerConfig{Self: identity("c", "n1"), Local: localReplica(p), Log: quiet})
	server.roomTimeout = time.Hour // however slow the client is
	rpc := grpc.NewServer()        // without the keepalive of nodes, which a slow client misses
	server.Register(rpc)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { _ = rpc.Serve(lis) })
	defer rpc.Stop()
	defer server.Close()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	require.NoError(t, err)
	defer conn.Close()
	stream, err := node.NewNodePartitionsClient(conn).Exchange(t.Context())
	require.NoError(t, err)
	self := identity("c", "client")
	require.NoError(t, stream.Send(&node.PartitionBatch{Hello: self.Hello()}))
	for i := range uint64(requests) {
		id := ids.NewInvocation(i, [16]byte{2})
		results.Store(id, i)
		req := &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_AWAIT, Id: id[:]}
		if i%2 == 0 {
			command, err := codec.EncodeCommand(1, &machine.Invoke{ID: id, Target: machine.Target{Service: "S", Handler: "h"}})
			require.NoError(t, err)
			req = &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_CALL, Command: command}
		}
		require.NoError(t, stream.Send(&node.PartitionBatch{Frames: []*node.PartitionFrame{{Sequence: i, Request: req}}}))
	}
	// All have had their result once.
	require.Eventually(t, func() bool { return called.Load() >= requests/2 && reads.Load() >= requests/2 }, 10*time.Minute, time.Millisecond)
	var heap runtime.MemStats
	require.Eventually(t, func() bool {
		runtime.GC()
		runtime.ReadMemStats(&heap)
		return heap.HeapAlloc < 200<<20
	}, 10*time.Minute, 10*time.Millisecond, "results wait as IDs")

	incomplete, got := newAssembler(nil), map[uint64]bool{}
	for len(got) < requests {
		batch, err := stream.Recv()
		require.NoError(t, err)
		for _, f := range batch.Frames {
			require.Nil(t, f.Response, "it is not large: %s", f.Response.GetMessage())
			whole, done, err := incomplete.add(f)
			require.NoError(t, err)
			if !done {
				continue
			}
			r := new(node.PartitionResponse)
			require.NoError(t, r.UnmarshalVT(whole))
			require.Equal(t, node.PartitionCode_PARTITION_CODE_OK, r.Code, "%s", r.Message)
			e, err := endingFromWire(r.Ending)
			require.NoError(t, err)
			require.True(t, bytes.Equal(numbered(f.Sequence), e.Result.Value))
			require.Equal(t, f.Sequence%2 == 0, r.Outcome.GetOwn(), "the outcome of a call is kept")
			require.False(t, got[f.Sequence])
			got[f.Sequence] = true
		}
	}
	require.EqualValues(t, requests/2, called.Load(), "no call is repeated")
	require.Greater(t, reads.Load(), int64(requests/2), "results were read again")
}

// A result that has expired while it waited for room is not reported as unknown to the node.
func TestAResultThatExpiresWhileItWaitsIsNotReportedAsNotFound(t *testing.T) {
	p := newFake(true)
	reads := 0
	p.await = func(context.Context, ids.Invocation) (partition.Ending, error) {
		if reads++; reads > 1 {
			return partition.Ending{}, partition.ErrNotFound
		}
		return partition.Ending{Result: journal.Result{Value: numbered(1)}}, nil
	}
	in := &inbound{s: NewServer(ServerConfig{Self: identity("c", "n1"), Local: localReplica(p), Log: quiet}), room: newResponseRoom(roomTimeout)}
	defer in.s.Close()
	require.True(t, in.room.TryAcquire(responseBytes))
	id := invocationID(1)
	var g sync.WaitGroup
	g.Go(func() {
		r, room := in.serve(t.Context(), &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_AWAIT, Id: id[:]})
		if r.Code != node.PartitionCode_PARTITION_CODE_UNKNOWN_OUTCOME {
			t.Errorf("%v: %s", r.Code, r.Message)
		}
		in.room.release(room)
	})
	require.Eventually(t, func() bool { return !in.room.TryAcquire(0) }, time.Minute, time.Millisecond, "it waits for room")
	in.room.Release(responseBytes)
	g.Wait()
	require.True(t, in.room.TryAcquire(responseBytes), "nothing occupies room any longer")
}
