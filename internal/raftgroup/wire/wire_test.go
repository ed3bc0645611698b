package wire

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/proto/node"
)

var testHeader = raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a"), Addr: []byte("a:1")}

// FuzzFrame requires that whatever a peer sends is no message, no request, or a request that stays
// the same when it is sent on, and that no request makes Check panic.
func FuzzFrame(f *testing.F) {
	logs := []*raft.Log{
		{Index: 8, Term: 2, Type: raft.LogCommand, Data: []byte("data"), Extensions: []byte("x"), AppendedAt: time.Unix(0, 5)}, {Index: 9, Term: 2, Type: raft.LogNoop},
	}
	entries := &raft.AppendEntriesRequest{RPCHeader: testHeader, Term: 2, PrevLogEntry: 7, PrevLogTerm: 1, LeaderCommitIndex: 7, Entries: logs}
	snapshot := &raft.InstallSnapshotRequest{RPCHeader: testHeader, SnapshotVersion: 1, Term: 2, LastLogIndex: 9, LastLogTerm: 2, Configuration: []byte("c")}
	for _, m := range []interface{ MarshalVT() ([]byte, error) }{
		&node.RaftFrame{Sequence: 1, GroupId: 3, TimeoutMs: 100, AppendRequest: EncodeAppend(entries)},
		&node.RaftFrame{VoteRequest: &node.VoteRequest{Header: EncodeHeader(testHeader), Term: 4}},
		&node.RaftFrame{PreVoteRequest: &node.VoteRequest{Term: 4}}, &node.RaftFrame{TimeoutNowRequest: &node.TimeoutNowRequest{}},
		&node.RaftFrame{Hello: &node.Hello{ClusterId: "c", NodeId: "n"}, Error: "no"},
		&node.SnapshotChunk{Request: EncodeSnapshot(3, snapshot), Data: []byte("d")},
	} {
		b, err := m.MarshalVT()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var frame node.RaftFrame
		if err := frame.UnmarshalVTUnsafe(data); err == nil {
			request, err := DecodeRequest(&frame)
			_ = Receiver{MaxTerm: 1}.Check(request)
			if r, ok := request.(*raft.AppendEntriesRequest); ok {
				require.Equal(t, r, decodeAppend(EncodeAppend(r)))
			} else if (request == nil) == (err == nil) {
				t.Fatalf("request %v, error %v", request, err)
			}
		}
		var chunk node.SnapshotChunk
		if err := chunk.UnmarshalVTUnsafe(data); err == nil && chunk.Request != nil {
			r := DecodeSnapshot(chunk.Request)
			_ = Receiver{MaxTerm: 1}.Check(r)
			require.Equal(t, r, DecodeSnapshot(EncodeSnapshot(chunk.Request.GroupId, r)))
		}
	})
}
