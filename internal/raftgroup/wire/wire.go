package wire

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/proto/node"
)

// EncodeHeader converts the header of a request or response.
func EncodeHeader(h raft.RPCHeader) *node.Header {
	return &node.Header{ProtocolVersion: int64(h.ProtocolVersion), Id: h.ID, Address: h.Addr}
}

// DecodeHeader is the reverse of EncodeHeader.
func DecodeHeader(h *node.Header) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersion(h.GetProtocolVersion()), ID: h.GetId(), Addr: h.GetAddress()}
}

func encodeEntries(logs []*raft.Log) []*node.LogEntry {
	if len(logs) == 0 {
		return nil
	}
	values := make([]node.LogEntry, len(logs))
	out := make([]*node.LogEntry, len(logs))
	for i, l := range logs {
		e := &values[i]
		e.Index, e.Term, e.Type = l.Index, l.Term, uint32(l.Type)
		e.Data, e.Extensions, e.AppendedAt = l.Data, l.Extensions, unixNano(l.AppendedAt)
		out[i] = e
	}
	return out
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func decodeEntries(entries []*node.LogEntry) []*raft.Log {
	if len(entries) == 0 {
		return nil
	}
	values := make([]raft.Log, len(entries))
	out := make([]*raft.Log, len(entries))
	for i, e := range entries {
		l := &values[i]
		l.Index, l.Term, l.Type = e.Index, e.Term, raft.LogType(e.Type)
		l.Data, l.Extensions = e.Data, e.Extensions
		if e.AppendedAt != 0 {
			l.AppendedAt = time.Unix(0, e.AppendedAt)
		}
		out[i] = l
	}
	return out
}

// EncodeAppend converts an append.
func EncodeAppend(a *raft.AppendEntriesRequest) *node.AppendEntriesRequest {
	return &node.AppendEntriesRequest{
		Header: EncodeHeader(a.RPCHeader), Term: a.Term, PrevIndex: a.PrevLogEntry, PrevTerm: a.PrevLogTerm,
		LeaderCommit: a.LeaderCommitIndex, Entries: encodeEntries(a.Entries),
	}
}

// decodeAppend is the reverse of EncodeAppend.
func decodeAppend(m *node.AppendEntriesRequest) *raft.AppendEntriesRequest {
	h := DecodeHeader(m.Header)
	return &raft.AppendEntriesRequest{
		RPCHeader: h, Term: m.Term, Leader: h.Addr, //nolint:staticcheck // read by members of an older version
		PrevLogEntry: m.PrevIndex, PrevLogTerm: m.PrevTerm,
		LeaderCommitIndex: m.LeaderCommit, Entries: decodeEntries(m.Entries),
	}
}

// EncodeVote converts a vote request.
func EncodeVote(v *raft.RequestVoteRequest) *node.VoteRequest {
	return &node.VoteRequest{
		Header: EncodeHeader(v.RPCHeader), Term: v.Term, LastLogIndex: v.LastLogIndex, LastLogTerm: v.LastLogTerm,
		LeadershipTransfer: v.LeadershipTransfer,
	}
}

// EncodePreVote converts a request for a pre-vote.
func EncodePreVote(v *raft.RequestPreVoteRequest) *node.VoteRequest {
	return &node.VoteRequest{Header: EncodeHeader(v.RPCHeader), Term: v.Term, LastLogIndex: v.LastLogIndex, LastLogTerm: v.LastLogTerm}
}

func decodeVote(m *node.VoteRequest) *raft.RequestVoteRequest {
	h := DecodeHeader(m.Header)
	return &raft.RequestVoteRequest{
		RPCHeader: h, Term: m.Term, Candidate: h.Addr, //nolint:staticcheck // as above
		LastLogIndex: m.LastLogIndex, LastLogTerm: m.LastLogTerm,
		LeadershipTransfer: m.LeadershipTransfer,
	}
}

func decodePreVote(m *node.VoteRequest) *raft.RequestPreVoteRequest {
	return &raft.RequestPreVoteRequest{
		RPCHeader: DecodeHeader(m.Header), Term: m.Term, LastLogIndex: m.LastLogIndex, LastLogTerm: m.LastLogTerm,
	}
}

// EncodeSnapshot converts the request that precedes the data of a snapshot.
func EncodeSnapshot(group uint32, a *raft.InstallSnapshotRequest) *node.InstallSnapshotRequest {
	return &node.InstallSnapshotRequest{
		GroupId: group, Header: EncodeHeader(a.RPCHeader), SnapshotVersion: int64(a.SnapshotVersion), Term: a.Term,
		LastLogIndex: a.LastLogIndex, LastLogTerm: a.LastLogTerm,
		Configuration: a.Configuration, ConfigurationIndex: a.ConfigurationIndex,
	}
}

// DecodeSnapshot is the reverse of EncodeSnapshot.
func DecodeSnapshot(m *node.InstallSnapshotRequest) *raft.InstallSnapshotRequest {
	h := DecodeHeader(m.Header)
	return &raft.InstallSnapshotRequest{
		RPCHeader: h, SnapshotVersion: raft.SnapshotVersion(m.SnapshotVersion), Term: m.Term, Leader: h.Addr,
		LastLogIndex: m.LastLogIndex, LastLogTerm: m.LastLogTerm,
		Configuration: m.Configuration, ConfigurationIndex: m.ConfigurationIndex,
	}
}

// DecodeRequest returns the Raft request in a frame: one of the types that Check accepts, or a
// *raft.TimeoutNowRequest.
func DecodeRequest(f *node.RaftFrame) (any, error) {
	switch {
	case f.AppendRequest != nil:
		return decodeAppend(f.AppendRequest), nil
	case f.VoteRequest != nil:
		return decodeVote(f.VoteRequest), nil
	case f.PreVoteRequest != nil:
		return decodePreVote(f.PreVoteRequest), nil
	case f.TimeoutNowRequest != nil:
		return &raft.TimeoutNowRequest{RPCHeader: DecodeHeader(f.TimeoutNowRequest.Header)}, nil
	}
	return nil, fmt.Errorf("frame without a request")
}

// EncodeResponse puts Raft's response into a frame.
func EncodeResponse(f *node.RaftFrame, resp any) error {
	switch r := resp.(type) {
	case *raft.AppendEntriesResponse:
		f.AppendResponse = &node.AppendEntriesResponse{
			Header: EncodeHeader(r.RPCHeader), Term: r.Term, LastLog: r.LastLog,
			Success: r.Success, NoRetryBackoff: r.NoRetryBackoff,
		}
	case *raft.RequestVoteResponse:
		f.VoteResponse = &node.VoteResponse{Header: EncodeHeader(r.RPCHeader), Term: r.Term, Granted: r.Granted}
	case *raft.RequestPreVoteResponse:
		f.PreVoteResponse = &node.VoteResponse{Header: EncodeHeader(r.RPCHeader), Term: r.Term, Granted: r.Granted}
	case *raft.TimeoutNowResponse:
		f.TimeoutNowResponse = &node.TimeoutNowResponse{Header: EncodeHeader(r.RPCHeader)}
	default:
		return fmt.Errorf("raft responded with %T", resp)
	}
	return nil
}

// DecodeAppendResponse converts the response to an append.
func DecodeAppendResponse(m *node.AppendEntriesResponse) raft.AppendEntriesResponse {
	return raft.AppendEntriesResponse{
		RPCHeader: DecodeHeader(m.Header), Term: m.Term, LastLog: m.LastLog,
		Success: m.Success, NoRetryBackoff: m.NoRetryBackoff,
	}
}

// DecodeVoteResponse converts the response to a vote request.
func DecodeVoteResponse(m *node.VoteResponse) raft.RequestVoteResponse {
	return raft.RequestVoteResponse{RPCHeader: DecodeHeader(m.Header), Term: m.Term, Granted: m.Granted}
}

// DecodePreVoteResponse converts the response to a request for a pre-vote.
func DecodePreVoteResponse(m *node.VoteResponse) raft.RequestPreVoteResponse {
	return raft.RequestPreVoteResponse{RPCHeader: DecodeHeader(m.Header), Term: m.Term, Granted: m.Granted}
}

// DecodeSnapshotResponse converts the response to a snapshot.
func DecodeSnapshotResponse(m *node.InstallSnapshotResponse) raft.InstallSnapshotResponse {
	return raft.InstallSnapshotResponse{RPCHeader: DecodeHeader(m.Header), Term: m.Term, Success: m.Success}
}

// RequestHeader returns the header of the request in a frame, nil if it has none.
func RequestHeader(f *node.RaftFrame) *node.Header {
	switch {
	case f.AppendRequest != nil:
		return f.AppendRequest.Header
	case f.VoteRequest != nil:
		return f.VoteRequest.Header
	case f.PreVoteRequest != nil:
		return f.PreVoteRequest.Header
	case f.TimeoutNowRequest != nil:
		return f.TimeoutNowRequest.Header
	}
	return nil
}
