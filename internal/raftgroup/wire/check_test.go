package wire

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func configuration(servers ...raft.Server) []byte {
	return raft.EncodeConfiguration(raft.Configuration{Servers: servers})
}

func TestRequestsOfMembersPassTheCheck(t *testing.T) {
	r := Receiver{MaxTerm: 3 + MaxTermStep, CheckEntry: func([]byte) error { return nil }}
	voter := configuration(raft.Server{ID: "a", Address: "a:1"})
	for name, request := range map[string]any{
		"heartbeat": &raft.AppendEntriesRequest{Term: 3},
		"entries of all kinds": &raft.AppendEntriesRequest{Term: 4, PrevLogEntry: 7, PrevLogTerm: 2, Entries: []*raft.Log{
			{Index: 8, Term: 2, Type: raft.LogCommand},
			{Index: 9, Term: 3, Type: raft.LogNoop},
			{Index: 10, Term: 4, Type: raft.LogConfiguration, Data: voter},
			{Index: 11, Term: 4, Type: raft.LogBarrier},
		}},
		"vote":               &raft.RequestVoteRequest{Term: 3 + MaxTermStep},
		"pre-vote":           &raft.RequestPreVoteRequest{Term: 4},
		"election":           &raft.TimeoutNowRequest{},
		"snapshot":           &raft.InstallSnapshotRequest{Term: 4, LastLogIndex: 9, LastLogTerm: 3, ConfigurationIndex: 1, Configuration: voter},
		"nonvoter and voter": &raft.InstallSnapshotRequest{Configuration: configuration(raft.Server{ID: "a", Address: "a:1"}, raft.Server{ID: "b", Address: "b:1", Suffrage: raft.Nonvoter})},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, r.Check(request)) })
	}
}

func TestRequestsThatNoMemberSendsAreRejected(t *testing.T) {
	unusable := errors.New("cannot be decoded")
	r := Receiver{MaxTerm: 3 + MaxTermStep, CheckEntry: func(data []byte) error {
		if string(data) == "bad" {
			return unusable
		}
		return nil
	}}
	entry := func(e raft.Log) *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{Term: 4, PrevLogEntry: 7, PrevLogTerm: 2, Entries: []*raft.Log{&e}}
	}
	voter := raft.Server{ID: "a", Address: "a:1"}
	for name, request := range map[string]any{
		"term of a vote":                    &raft.RequestVoteRequest{Term: 4 + MaxTermStep},
		"term of a pre-vote":                &raft.RequestPreVoteRequest{Term: 4 + MaxTermStep},
		"term of an append":                 &raft.AppendEntriesRequest{Term: 4 + MaxTermStep},
		"previous entry of a later term":    &raft.AppendEntriesRequest{Term: 4, PrevLogEntry: 7, PrevLogTerm: 5},
		"previous entry beyond all":         &raft.AppendEntriesRequest{Term: 4, PrevLogEntry: maxIndex + 1},
		"gap":                               entry(raft.Log{Index: 9, Term: 2}),
		"entry of an earlier term":          entry(raft.Log{Index: 8, Term: 1}),
		"entry of a later term":             entry(raft.Log{Index: 8, Term: 5}),
		"unknown kind":                      entry(raft.Log{Index: 8, Term: 2, Type: 99}),
		"command":                           entry(raft.Log{Index: 8, Term: 2, Data: []byte("bad")}),
		"configuration of an entry":         entry(raft.Log{Index: 8, Term: 2, Type: raft.LogConfiguration, Data: []byte("bad")}),
		"snapshot after the leader":         &raft.InstallSnapshotRequest{Term: 2, LastLogTerm: 3, Configuration: configuration(voter)},
		"configuration after a snapshot":    &raft.InstallSnapshotRequest{LastLogIndex: 1, ConfigurationIndex: 2, Configuration: configuration(voter)},
		"no configuration":                  &raft.InstallSnapshotRequest{},
		"configuration without voters":      &raft.InstallSnapshotRequest{Configuration: configuration()},
		"server twice":                      &raft.InstallSnapshotRequest{Configuration: configuration(voter, voter)},
		"server without address":            &raft.InstallSnapshotRequest{Configuration: configuration(voter, raft.Server{ID: "b"})},
		"term of a snapshot":                &raft.InstallSnapshotRequest{Term: 4 + MaxTermStep, Configuration: configuration(voter)},
		"snapshot beyond all other indexes": &raft.InstallSnapshotRequest{LastLogIndex: maxIndex + 1, Configuration: configuration(voter)},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, r.Check(request), errImplausible) })
	}
	require.ErrorIs(t, r.Check(entry(raft.Log{Index: 8, Term: 2, Data: []byte("bad")})), unusable)
}

func TestWithoutAnInstanceAnyTermIsPlausible(t *testing.T) {
	require.NoError(t, Receiver{}.Check(&raft.RequestVoteRequest{Term: 1 << 60}))
}
