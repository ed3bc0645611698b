package raftgroup

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/proto/node"
)

// The functions in this file convert between Raft's structures and the wire format. Fields
// that Raft has deprecated are derived from the header on receipt.

func headerToWire(h raft.RPCHeader) *node.Header {
	return &node.Header{ProtocolVersion: int64(h.ProtocolVersion), Id: h.ID, Address: h.Addr}
}

func headerFromWire(h *node.Header) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersion(h.GetProtocolVersion()), ID: h.GetId(), Addr: h.GetAddress()}
}

func entriesToWire(logs []*raft.Log) []*node.LogEntry {
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

func entriesFromWire(entries []*node.LogEntry) []*raft.Log {
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

func appendToWire(a *raft.AppendEntriesRequest) *node.AppendEntriesRequest {
	return &node.AppendEntriesRequest{
		Header: headerToWire(a.RPCHeader), Term: a.Term, PrevIndex: a.PrevLogEntry, PrevTerm: a.PrevLogTerm,
		LeaderCommit: a.LeaderCommitIndex, Entries: entriesToWire(a.Entries),
	}
}

func appendFromWire(m *node.AppendEntriesRequest) *raft.AppendEntriesRequest {
	h := headerFromWire(m.Header)
	return &raft.AppendEntriesRequest{
		RPCHeader: h, Term: m.Term, Leader: h.Addr, //nolint:staticcheck // read by members of an older version
		PrevLogEntry: m.PrevIndex, PrevLogTerm: m.PrevTerm,
		LeaderCommitIndex: m.LeaderCommit, Entries: entriesFromWire(m.Entries),
	}
}

func voteFromWire(m *node.VoteRequest) *raft.RequestVoteRequest {
	h := headerFromWire(m.Header)
	return &raft.RequestVoteRequest{
		RPCHeader: h, Term: m.Term, Candidate: h.Addr, //nolint:staticcheck // as above
		LastLogIndex: m.LastLogIndex, LastLogTerm: m.LastLogTerm,
		LeadershipTransfer: m.LeadershipTransfer,
	}
}

func preVoteFromWire(m *node.VoteRequest) *raft.RequestPreVoteRequest {
	return &raft.RequestPreVoteRequest{
		RPCHeader: headerFromWire(m.Header), Term: m.Term, LastLogIndex: m.LastLogIndex, LastLogTerm: m.LastLogTerm,
	}
}

func snapshotToWire(group uint32, a *raft.InstallSnapshotRequest) *node.InstallSnapshotRequest {
	return &node.InstallSnapshotRequest{
		GroupId: group, Header: headerToWire(a.RPCHeader), SnapshotVersion: int64(a.SnapshotVersion), Term: a.Term,
		LastLogIndex: a.LastLogIndex, LastLogTerm: a.LastLogTerm,
		Configuration: a.Configuration, ConfigurationIndex: a.ConfigurationIndex,
	}
}

func snapshotFromWire(m *node.InstallSnapshotRequest) *raft.InstallSnapshotRequest {
	h := headerFromWire(m.Header)
	return &raft.InstallSnapshotRequest{
		RPCHeader: h, SnapshotVersion: raft.SnapshotVersion(m.SnapshotVersion), Term: m.Term, Leader: h.Addr,
		LastLogIndex: m.LastLogIndex, LastLogTerm: m.LastLogTerm,
		Configuration: m.Configuration, ConfigurationIndex: m.ConfigurationIndex,
	}
}

// requestFromWire returns the Raft request in a frame.
func requestFromWire(f *node.RaftFrame) (any, error) {
	switch {
	case f.AppendRequest != nil:
		return appendFromWire(f.AppendRequest), nil
	case f.VoteRequest != nil:
		return voteFromWire(f.VoteRequest), nil
	case f.PreVoteRequest != nil:
		return preVoteFromWire(f.PreVoteRequest), nil
	case f.TimeoutNowRequest != nil:
		return &raft.TimeoutNowRequest{RPCHeader: headerFromWire(f.TimeoutNowRequest.Header)}, nil
	}
	return nil, fmt.Errorf("frame without a request")
}

// responseToWire puts Raft's response into a frame.
func responseToWire(f *node.RaftFrame, resp any) error {
	switch r := resp.(type) {
	case *raft.AppendEntriesResponse:
		f.AppendResponse = &node.AppendEntriesResponse{
			Header: headerToWire(r.RPCHeader), Term: r.Term, LastLog: r.LastLog,
			Success: r.Success, NoRetryBackoff: r.NoRetryBackoff,
		}
	case *raft.RequestVoteResponse:
		f.VoteResponse = &node.VoteResponse{Header: headerToWire(r.RPCHeader), Term: r.Term, Granted: r.Granted}
	case *raft.RequestPreVoteResponse:
		f.PreVoteResponse = &node.VoteResponse{Header: headerToWire(r.RPCHeader), Term: r.Term, Granted: r.Granted}
	case *raft.TimeoutNowResponse:
		f.TimeoutNowResponse = &node.TimeoutNowResponse{Header: headerToWire(r.RPCHeader)}
	default:
		return fmt.Errorf("raft responded with %T", resp)
	}
	return nil
}
