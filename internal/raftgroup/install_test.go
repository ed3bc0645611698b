package raftgroup

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/statestream"
)

// valuesOnly is a logstore.Storage without a log.
type valuesOnly struct {
	logstore.Storage
	values map[string][]byte
}

func (s *valuesOnly) FirstIndex() (uint64, error)    { return 0, nil }
func (s *valuesOnly) LastIndex() (uint64, error)     { return 0, nil }
func (s *valuesOnly) GetLog(uint64, *raft.Log) error { return raft.ErrLogNotFound }
func (s *valuesOnly) Set(key, value []byte) error    { s.values[string(key)] = value; return nil }
func (s *valuesOnly) Get(key []byte) ([]byte, error) { return s.values[string(key)], nil }

// receiver is a state machine that has room for one received state, as the tables of a
// partition have.
type receiver struct {
	StateMachine
	at        Position
	importing atomic.Int32
	hold      chan struct{} // Commit waits until it is closed
}

type received struct{ *receiver }

func (r *receiver) Applied() Position { return r.at }

func (r *receiver) Flush() (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

func (r *receiver) Import() (Importer, error) {
	if r.importing.Add(1) > 1 {
		panic("two states are received at the same time")
	}
	return &received{receiver: r}, nil
}

func (r *received) Commit(ctx context.Context, at Position) error {
	select {
	case <-r.hold:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.importing.Add(-1)
	r.receiver.at = at
	return nil
}

func (r *received) Abort() error {
	r.importing.Add(-1)
	return nil
}

func (r *received) Put(_, _ []byte) error { return nil }

func testInstaller(t *testing.T) (*installer, *receiver) {
	sm := &receiver{hold: make(chan struct{})}
	storage := newGroupStorage(&valuesOnly{values: map[string][]byte{}}, 1<<10, testLogger(t), nil, nil)
	f := newFSM(sm, func(error) {})
	snaps := &snapshotStore{storage: storage, fsm: f}
	f.install = &installer{storage: storage, snaps: snaps, rebuild: func(string) {}}
	return f.install, sm
}

// fewRows is a state of three rows at a position.
type fewRows Position

func (s fewRows) Applied() Position { return Position(s) }

func (s fewRows) Each(_ context.Context, emit func(key, value []byte) error) error {
	for _, key := range []string{"a", "b", "c"} {
		if err := emit([]byte(key), []byte("value")); err != nil {
			return err
		}
	}
	return nil
}

func stateAt(t *testing.T, at Position) *bytes.Reader {
	var buf bytes.Buffer
	require.NoError(t, statestream.Write(t.Context(), &buf, fewRows(at)))
	return bytes.NewReader(buf.Bytes())
}

// TestInterruptedInstallationIsAwaited interrupts the sender of a snapshot, as when a leader
// is killed, while the state machine switches to the received state. The next leader's
// snapshot must not be received into the same place meanwhile.
func TestInterruptedInstallationIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, sm := testInstaller(t)
		at := Position{Index: 10, Term: 2}
		switched := make(chan error, 1)
		ctx, hangUp := context.WithCancel(t.Context())
		interrupted := make(chan error, 1)
		go func() {
			_, err := in.receive(ctx, snapshotRequest(at), stateAt(t, at), func(ctx context.Context, rpc raft.RPC) (any, error) {
				go func() { switched <- restore(in, rpc.Command.(*raft.InstallSnapshotRequest)) }()
				<-ctx.Done()
				return nil, ctx.Err()
			})
			interrupted <- err
		}()
		synctest.Wait() // it switches
		hangUp()
		synctest.Wait()

		never := func(context.Context, raft.RPC) (any, error) {
			t.Error("Raft is asked again")
			return nil, errPlanted
		}
		_, err := in.receive(t.Context(), snapshotRequest(at), stateAt(t, at), never)
		require.ErrorIs(t, err, errInstallBusy)
		close(sm.hold)
		require.NoError(t, <-switched)
		require.ErrorIs(t, <-interrupted, context.Canceled)
		resp, err := in.receive(t.Context(), snapshotRequest(at), stateAt(t, at), never)
		require.NoError(t, err)
		require.True(t, resp.Success, "it is there")
	})
}

// TestStoppingDoesNotWaitForAnInstallation stops a replica while its disk is full, so that the
// received state does not become durable. It may still do, so the record of it must remain: the
// next start would otherwise find a state beyond the log, and quarantine the replica.
func TestStoppingDoesNotWaitForAnInstallation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, sm := testInstaller(t)
		running, stop := context.WithCancel(t.Context())
		in.snaps.fsm.running = func() context.Context { return running }
		at := Position{Index: 10, Term: 2}
		done := make(chan error, 1)
		go func() {
			_, err := in.receive(t.Context(), snapshotRequest(at), stateAt(t, at), func(_ context.Context, rpc raft.RPC) (any, error) {
				return nil, restore(in, rpc.Command.(*raft.InstallSnapshotRequest))
			})
			done <- err
		}()
		synctest.Wait()
		require.Empty(t, done)
		stop()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Zero(t, sm.importing.Load(), "the received rows are deleted")

		stored, have, err := hardstate.Reconcile(in.storage, nil, at)
		require.NoError(t, err)
		require.True(t, have)
		require.Equal(t, at.Index, stored.Index)
	})
}

// TestLateInstallationDoesNotUseAnotherState lets Raft process a request whose sender has
// given up, after another snapshot was received: Raft must not mistake its content for that of
// the former, since it records the former's index and members.
func TestLateInstallationDoesNotUseAnotherState(t *testing.T) {
	in, sm := testInstaller(t)
	close(sm.hold)
	first, second := Position{Index: 10, Term: 2}, Position{Index: 20, Term: 3}
	_, err := in.receive(t.Context(), snapshotRequest(first), stateAt(t, first), func(context.Context, raft.RPC) (any, error) {
		return nil, context.Canceled
	})
	require.ErrorIs(t, err, context.Canceled)
	resp, err := in.receive(t.Context(), snapshotRequest(second), stateAt(t, second), func(_ context.Context, rpc raft.RPC) (any, error) {
		require.ErrorIs(t, restore(in, snapshotRequest(first)), errNoSnapshot)
		require.Equal(t, Position{}, sm.Applied())
		require.NoError(t, restore(in, rpc.Command.(*raft.InstallSnapshotRequest)))
		return &raft.InstallSnapshotResponse{Term: 3, Success: true}, nil
	})
	require.NoError(t, err)
	require.True(t, resp.Success)
	require.Equal(t, second, sm.Applied())
}

// TestLocalSnapshotDoesNotReplaceAnInstalledOne installs a snapshot while one of the local state is
// taken, which Raft does concurrently. A record older than the state would quarantine the
// replica at the next start: the log between them has been removed.
func TestLocalSnapshotDoesNotReplaceAnInstalledOne(t *testing.T) {
	in, sm := testInstaller(t)
	close(sm.hold)
	rebuilt := 0
	in.rebuild = func(string) { rebuilt++ }
	sm.at = Position{Index: 5, Term: 1}
	local, err := in.snaps.fsm.Snapshot()
	require.NoError(t, err)
	sink, err := in.snaps.Create(1, 5, 1, raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a:1"}}}, 1, nil)
	require.NoError(t, err)
	require.NoError(t, local.Persist(sink))

	at := Position{Index: 10, Term: 2}
	_, err = in.receive(t.Context(), snapshotRequest(at), stateAt(t, at), func(_ context.Context, rpc raft.RPC) (any, error) {
		require.NoError(t, restore(in, rpc.Command.(*raft.InstallSnapshotRequest)))
		return &raft.InstallSnapshotResponse{Term: 2, Success: true}, nil
	})
	require.NoError(t, err)
	require.ErrorIs(t, sink.Close(), errSuperseded)
	stored, _, err := hardstate.CurrentSnapshot.Load(in.storage)
	require.NoError(t, err)
	require.Equal(t, at.Index, stored.Index)
	rec, _ := in.snaps.current()
	require.Equal(t, at.Index, rec.Index)
	require.Zero(t, rebuilt)
	local.Release()
	require.Equal(t, 1, rebuilt, "Raft's own record may be the older one")
}
