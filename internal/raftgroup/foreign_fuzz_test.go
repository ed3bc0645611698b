package raftgroup

import (
	"bytes"
	"testing"
	"time"

	"platform/internal/raftgroup/logstore"
	"platform/proto/node"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// FuzzFrame: whatever a peer sends is no message, no request, or a request that
// stays the same when it is sent on.
func FuzzFrame(f *testing.F) {
	logs := []*raft.Log{
		{Index: 8, Term: 2, Type: raft.LogCommand, Data: []byte("data"), Extensions: []byte("x"), AppendedAt: time.Unix(0, 5)}, {Index: 9, Term: 2, Type: raft.LogNoop},
	}
	entries := &raft.AppendEntriesRequest{RPCHeader: testHeader, Term: 2, PrevLogEntry: 7, PrevLogTerm: 1, LeaderCommitIndex: 7, Entries: logs}
	snapshot := &raft.InstallSnapshotRequest{RPCHeader: testHeader, SnapshotVersion: 1, Term: 2, LastLogIndex: 9, LastLogTerm: 2, Configuration: []byte("c")}
	for _, m := range []interface{ MarshalVT() ([]byte, error) }{
		&node.RaftFrame{Sequence: 1, GroupId: 3, TimeoutMs: 100, AppendRequest: appendToWire(entries)},
		&node.RaftFrame{VoteRequest: &node.VoteRequest{Header: headerToWire(testHeader), Term: 4}},
		&node.RaftFrame{PreVoteRequest: &node.VoteRequest{Term: 4}}, &node.RaftFrame{TimeoutNowRequest: &node.TimeoutNowRequest{}},
		&node.RaftFrame{Hello: &node.Hello{ClusterId: "c", NodeId: "n"}, Error: "no"},
		&node.SnapshotChunk{Request: snapshotToWire(3, snapshot), Data: []byte("d")},
	} {
		b, err := m.MarshalVT()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var frame node.RaftFrame
		if err := frame.UnmarshalVTUnsafe(data); err == nil {
			request, err := requestFromWire(&frame)
			if r, ok := request.(*raft.AppendEntriesRequest); ok {
				require.Equal(t, r, appendFromWire(appendToWire(r)))
			} else if (request == nil) == (err == nil) {
				t.Fatalf("request %v, error %v", request, err)
			}
		}
		var chunk node.SnapshotChunk
		if err := chunk.UnmarshalVTUnsafe(data); err == nil && chunk.Request != nil {
			r := snapshotFromWire(chunk.Request)
			require.Equal(t, r, snapshotFromWire(snapshotToWire(chunk.Request.GroupId, r)))
		}
	})
}

// FuzzSnapshotRecord: a record is refused, or stays the same when it is stored again.
func FuzzSnapshotRecord(f *testing.F) {
	f.Add(snapshotRecord{Index: 9, Term: 2, State: Position{Index: 8, Term: 2}, ConfigIndex: 1, Config: raft.Configuration{Servers: []raft.Server{
		{Suffrage: raft.Nonvoter, ID: "a", Address: "a:1"}, {ID: "b", Address: "b:1"},
	}}}.encode())
	f.Add(snapshotRecord{}.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeSnapshotRecord(data)
		if err != nil {
			require.ErrorIs(t, err, logstore.ErrCorrupt)
			return
		}
		again, err := decodeSnapshotRecord(r.encode())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}

// FuzzSnapshotStream: a stream of well-formed frames with any content, or of any
// bytes at all, is refused, or carries a state that stays the same when it is sent on.
func FuzzSnapshotStream(f *testing.F) {
	var whole bytes.Buffer
	require.NoError(f, writeState(f.Context(), &whole, manyPairs(3)))
	f.Add(whole.Bytes(), false)
	f.Add([]byte("\x01\x07RGSS\x01\x05\x01\x02\x06\x01k\x01v\x00\x00\x03\x02\x02\x06"), true)
	f.Add([]byte("\x01\x07RGSS\x01\x05\x01\x02\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x03\x02\x00\x00"), true)
	f.Fuzz(func(t *testing.T, data []byte, frames bool) {
		stream := bytes.NewBuffer(data)
		if frames {
			stream = framed(t, data)
		}
		got := &pairs{}
		at, err := readState(stream, got)
		if err != nil {
			return
		}
		got.at = at
		var sent bytes.Buffer
		require.NoError(t, writeState(t.Context(), &sent, got))
		again := &pairs{at: at}
		_, err = readState(&sent, again)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// framed makes frames of parts of data, each after its kind and length.
func framed(t *testing.T, data []byte) *bytes.Buffer {
	var b bytes.Buffer
	w := &frameWriter{w: &b}
	for len(data) >= 2 {
		n := min(int(data[1]), len(data)-2)
		require.NoError(t, w.frame(data[0], data[2:2+n]))
		data = data[2+n:]
	}
	return &b
}
