package node

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	nodepb "platform/proto/node"
)

// forger sends requests of Raft groups as if it were their leader.
type forger struct {
	*intruder
	stream   nodepb.RaftTransport_ExchangeClient
	sequence uint64
}

func (f *forger) open(ctx context.Context) {
	stream, err := nodepb.NewRaftTransportClient(f.conn).Exchange(ctx)
	require.NoError(f.t, err)
	require.NoError(f.t, stream.Send(&nodepb.RaftFrame{Hello: f.raft}))
	_, err = stream.Recv()
	require.NoError(f.t, err)
	f.stream = stream
}

func (f *forger) call(frame *nodepb.RaftFrame) *nodepb.RaftFrame {
	f.sequence++
	frame.Sequence, frame.Target, frame.TimeoutMs = f.sequence, f.target, 10_000
	require.NoError(f.t, f.stream.Send(frame))
	for {
		answer, err := f.stream.Recv()
		require.NoError(f.t, err, "the node has ended")
		if answer.Sequence == f.sequence {
			return answer
		}
	}
}

// Without certificates every client that reaches the node port can do what a member can, but
// malformed requests do not end the node: it refuses what it could not apply before it is stored,
// so that it starts again as well.
func TestMalformedRequestsDoNotStopANode(t *testing.T) {
	c := newTestCluster(t, 2) // the second node requests the ID of the cluster; the rest of the test does not use it
	c.healthy(2, 0, 1)
	clusterID := clusterIDOf(t, c, nil)
	in := newIntruder(t, c, nil, false, clusterID, "n2", incarnationOf(t, c, 1))
	defer in.connect()()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f := &forger{intruder: in}
	f.open(ctx)
	header := &nodepb.Header{ProtocolVersion: 3, Id: []byte("n2/" + in.hello.Incarnation), Address: []byte(in.hello.Address)}
	garbage := []byte("garbage that no replica can apply")
	broken := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "x"}}})
	forged := 0
	for group := range uint32(3) {
		last := func() (index, term uint64) {
			r := f.call(&nodepb.RaftFrame{GroupId: group, AppendRequest: &nodepb.AppendEntriesRequest{Header: header, Term: 1}})
			require.NotNil(t, r.AppendResponse, r.Error)
			return r.AppendResponse.LastLog, r.AppendResponse.Term
		}
		for kind := range uint32(8) {
			for _, data := range [][]byte{nil, garbage, broken[:len(broken)-3], {0xff}} {
				index, term := last()
				for prevTerm := term; prevTerm > 0 && prevTerm+3 > term; prevTerm-- { // the term of the last entry is not known
					for _, at := range []uint64{index + 1, index + 5, math.MaxUint64, 0} {
						if group > 0 && kind == uint32(raft.LogCommand) {
							continue // a replica of a partition is put into quarantine instead
						}
						if kind <= uint32(raft.LogBarrier) && kind != uint32(raft.LogConfiguration) && kind != uint32(raft.LogCommand) && at == index+1 {
							continue // an ordinary entry
						}
						f.call(&nodepb.RaftFrame{GroupId: group, AppendRequest: &nodepb.AppendEntriesRequest{
							Header: header, Term: term + 1, PrevIndex: index, PrevTerm: prevTerm, LeaderCommit: index + 5,
							Entries: []*nodepb.LogEntry{{Index: at, Term: term + 1, Type: kind, Data: data}},
						}})
						forged++
					}
				}
			}
		}
		for _, req := range []*nodepb.RaftFrame{
			{VoteRequest: &nodepb.VoteRequest{Header: header, Term: math.MaxUint64, LastLogIndex: math.MaxUint64, LastLogTerm: math.MaxUint64, LeadershipTransfer: true}},
			{PreVoteRequest: &nodepb.VoteRequest{Header: header, Term: math.MaxUint64}},
			{VoteRequest: &nodepb.VoteRequest{Term: 1}},
			{AppendRequest: &nodepb.AppendEntriesRequest{Header: header, Term: math.MaxUint64, PrevIndex: math.MaxUint64}},
			{AppendRequest: &nodepb.AppendEntriesRequest{}},
			{TimeoutNowRequest: &nodepb.TimeoutNowRequest{}},
			{SilenceRequest: &nodepb.SilenceRequest{Term: math.MaxUint64, Leader: "x"}},
			{Confirm: true, AppendRequest: &nodepb.AppendEntriesRequest{Term: math.MaxUint64}},
			{},
		} {
			req.GroupId = group
			f.call(req)
			forged++
		}
		for _, config := range [][]byte{nil, garbage, broken[:4]} {
			for _, index := range []uint64{0, 1 << 20, math.MaxUint64} {
				stream, err := nodepb.NewRaftTransportClient(in.conn).InstallSnapshot(ctx)
				require.NoError(t, err)
				_ = stream.Send(&nodepb.SnapshotChunk{Hello: in.raft, Data: garbage, Request: &nodepb.InstallSnapshotRequest{
					GroupId: group, Header: header, Term: 1 << 20, LastLogIndex: index, LastLogTerm: 1, Configuration: config, Target: in.target, SnapshotVersion: 1,
				}})
				_, err = stream.CloseAndRecv()
				require.Error(t, err)
				forged++
			}
		}
	}
	// Requests of the other services with malformed content. Those that are well formed take
	// effect: see docs/security.md.
	for name, attempt := range in.attempts() {
		switch name {
		case "cluster Join", "cluster Recover", "cluster Transfer", "cluster Ballot":
			continue
		}
		attemptCtx, cancel := context.WithTimeout(ctx, time.Second)
		_, _ = attempt(attemptCtx)
		cancel()
		forged++
	}
	t.Logf("%d requests", forged)
	cancel()
	c.healthy(2, 0, 1)
	for i := range c.nodes {
		c.stop(i)
	}
	for i := range c.nodes {
		c.start(i)
	}
	c.healthy(2, 0, 1)
	c.counter(0)
	code, body := c.do(0, false, "POST", "/platform/call/Counter/k0/add", "1")
	require.Equal(t, http.StatusOK, code, body)
	require.Equal(t, fmt.Sprint(1), body)
}
