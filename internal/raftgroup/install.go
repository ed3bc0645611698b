package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/statestream"
)

// repeatWindow is the time within which installing the same snapshot twice means that Raft
// and its log disagree.
const repeatWindow = time.Minute

var (
	errInstallBusy = errors.New("another snapshot is being installed")
	errNotNewer    = errors.New("snapshot is not newer than the state")
	errNoSnapshot  = errors.New("no snapshot was received")
)

// installer receives snapshots from the leader. The data is received and verified before
// Raft is involved, concurrently with the use of the current state, so that Raft's main
// loop is blocked only while the state machine switches.
type installer struct {
	storage *groupStorage
	snaps   *snapshotStore
	rebuild func(why string)

	busy sync.Mutex // held during one installation

	// mu covers the fields below.
	mu        sync.Mutex
	staged    *stagedState
	switching chan struct{} // closed when the state machine has switched, or could not
	last      Position      // of the last installed snapshot
	lastAt    time.Time
}

// stagedState is a received state that is ready to be committed.
type stagedState struct {
	imp Importer
	rec hardstate.SnapshotRecord
}

// deliverFunc passes a request to Raft and returns its response.
type deliverFunc func(context.Context, raft.RPC) (any, error)

// receive installs the snapshot of req, whose data comes from stream.
func (in *installer) receive(ctx context.Context, req *raft.InstallSnapshotRequest, stream io.Reader,
	deliver deliverFunc,
) (*raft.InstallSnapshotResponse, error) {
	if !in.busy.TryLock() {
		return nil, errInstallBusy
	}
	defer in.busy.Unlock()
	if in.covered(req.LastLogIndex, req.LastLogTerm) {
		return &raft.InstallSnapshotResponse{Term: req.Term, Success: true}, nil
	}
	if applied := in.snaps.fsm.applied.Load(); req.LastLogIndex <= applied {
		return nil, fmt.Errorf("snapshot at %d, state at %d: %w", req.LastLogIndex, applied, errNotNewer)
	}
	st, err := in.stage(req, stream)
	if err != nil {
		return nil, err
	}
	in.setStaged(st)
	resp, err := deliver(ctx, raft.RPC{Command: req, Reader: eofReader{}})
	if left := in.unstage(); left != nil { // Raft rejected it
		err = errors.Join(err, left.imp.Abort())
	}
	if err != nil {
		return nil, err
	}
	out, ok := resp.(*raft.InstallSnapshotResponse)
	if !ok {
		return nil, fmt.Errorf("raft responded with %T", resp)
	}
	return out, nil
}

// close waits for the current installation, which ends because the group's port is closed,
// and prevents further ones: the state machine may be closed afterwards.
func (in *installer) close() { in.busy.Lock() }

// covered reports whether the log or the current snapshot contains the entry at index and
// term. Then everything before it is equal too, and replacing the log would only discard
// entries that the leader may rely on.
func (in *installer) covered(index, term uint64) bool {
	if rec, ok := in.snaps.current(); ok && rec.Index == index && rec.Term == term {
		return true
	}
	var log raft.Log
	return in.storage.GetLog(index, &log) == nil && log.Term == term
}

// stage receives and verifies the state.
func (in *installer) stage(req *raft.InstallSnapshotRequest, stream io.Reader) (*stagedState, error) {
	imp, err := in.snaps.fsm.sm.Import()
	if err != nil {
		return nil, fmt.Errorf("import state: %w", err)
	}
	at, err := statestream.Read(stream, imp.Put)
	if err == nil && (at.Index > req.LastLogIndex || at.Term > req.LastLogTerm) {
		err = fmt.Errorf("state at %d in a snapshot at %d: %w", at.Index, req.LastLogIndex, logstore.ErrCorrupt)
	}
	if err != nil {
		return nil, errors.Join(err, imp.Abort())
	}
	return &stagedState{imp: imp, rec: hardstate.SnapshotRecord{
		Index: req.LastLogIndex, Term: req.LastLogTerm, State: at,
		ConfigIndex: req.ConfigurationIndex, Config: raft.DecodeConfiguration(req.Configuration),
	}}, nil
}

func (in *installer) setStaged(st *stagedState) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.staged = st
}

// unstage ends an installation: it returns the staged state if Raft has not committed it. If
// the state machine is switching to it, unstage waits: Raft's response may not have been
// awaited, and a state machine can only receive one state at a time.
func (in *installer) unstage() *stagedState {
	in.mu.Lock()
	st, switching := in.staged, in.switching
	in.staged = nil
	in.mu.Unlock()
	if switching != nil {
		<-switching
	}
	return st
}

// take returns the staged state of the snapshot with an ID, nil if there is none. The caller
// calls done when the state is no longer in use. Raft may get to a request only after its
// sender has given up, and another state has been staged.
func (in *installer) take(id string) (st *stagedState, done func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.staged == nil || installID(in.staged.rec) != id {
		return nil, nil
	}
	st, in.staged = in.staged, nil
	switching := make(chan struct{})
	in.switching = switching
	return st, func() {
		in.mu.Lock()
		in.switching = nil
		in.mu.Unlock()
		close(switching)
	}
}

// commit switches the state machine to the staged state of the snapshot with an ID. Record
// and state are written in an order that can be reconciled after a crash at any point: see
// settleRecords.
func (in *installer) commit(f *fsm, id string) error {
	st, done := in.take(id)
	if st == nil {
		return errNoSnapshot
	}
	defer done()
	if st.rec.State.Index <= f.applied.Load() || in.covered(st.rec.Index, st.rec.Term) {
		return errors.Join(errNotNewer, st.imp.Abort())
	}
	in.storage.retention.DropHolds() // the log is replaced
	if err := hardstate.PendingSnapshot.Save(in.storage, st.rec); err != nil {
		return errors.Join(err, st.imp.Abort())
	}
	ctx := f.running()
	if err := st.imp.Commit(ctx, st.rec.State); err != nil {
		err = fmt.Errorf("switch to the received state: %w", err)
		if ctx.Err() == nil { // otherwise the record tells the next start what the state is
			err = errors.Join(err, hardstate.PendingSnapshot.Drop(in.storage))
		}
		return errors.Join(err, st.imp.Abort())
	}
	f.applied.Store(st.rec.State.Index)
	err := in.snaps.replace(st.rec)
	if err == nil {
		err = hardstate.PendingSnapshot.Drop(in.storage)
	}
	if err != nil {
		f.fail(err) // record and state differ until the next start reconciles them
		return err
	}
	in.guard(st.rec)
	return nil
}

// guard has the Raft instance rebuilt if its knowledge of the log would no longer match the
// log: Raft removes the log after an installation but remembers its end, and then never
// accepts another entry.
func (in *installer) guard(rec hardstate.SnapshotRecord) {
	at := Position{Index: rec.Index, Term: rec.Term}
	in.mu.Lock()
	repeated := in.last == at && time.Since(in.lastAt) < repeatWindow
	in.last, in.lastAt = at, time.Now()
	in.mu.Unlock()

	if last, err := in.storage.LastIndex(); err != nil || last >= rec.Index {
		in.rebuild("the log did not end before the installed snapshot")
	} else if repeated {
		in.rebuild("the same snapshot was installed twice")
	}
}
