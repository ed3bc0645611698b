package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/retention"
	"platform/internal/raftgroup/statestream"
)

// snapshotStore is Raft's view of the virtual snapshots of a group. It stores only a
// record; opening a snapshot streams the current state of the machine.
type snapshotStore struct {
	storage raft.StableStore
	fsm     *fsm
	// retention keeps the log for followers that are being sent a snapshot; it may be nil.
	retention *retention.Policy

	replacing sync.Mutex // held while the record is replaced on disk

	// mu covers record, the current snapshot, valid if have is set.
	mu     sync.Mutex
	record hardstate.SnapshotRecord
	have   bool
}

var (
	_ raft.SnapshotStore = (*snapshotStore)(nil)
	_ raft.SnapshotSink  = (*snapshotSink)(nil)
)

// installPrefix begins the IDs of the snapshots of InstallSnapshot requests.
const installPrefix = "install-"

func installID(r hardstate.SnapshotRecord) string { return installPrefix + snapshotID(r) }

func snapshotID(r hardstate.SnapshotRecord) string { return fmt.Sprintf("%d-%d", r.Term, r.Index) }

func snapshotMeta(r hardstate.SnapshotRecord) *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version:            raft.SnapshotVersionMax,
		ID:                 snapshotID(r),
		Index:              r.Index,
		Term:               r.Term,
		Configuration:      r.Config,
		ConfigurationIndex: r.ConfigIndex,
	}
}

func (s *snapshotStore) current() (hardstate.SnapshotRecord, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record, s.have
}

// errSuperseded means that a snapshot was installed while one of the replaced state was taken.
var errSuperseded = errors.New("a newer snapshot was installed meanwhile")

// replace durably makes rec the current snapshot, unless the current one is newer. Raft takes a
// snapshot of the local state concurrently with the installation of one from the leader.
func (s *snapshotStore) replace(rec hardstate.SnapshotRecord) error {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	if now, ok := s.current(); ok && now.Index > rec.Index {
		return errSuperseded
	}
	if err := hardstate.CurrentSnapshot.Save(s.storage, rec); err != nil {
		return err
	}
	s.set(rec)
	return nil
}

// set makes rec, which is durable, the current snapshot.
func (s *snapshotStore) set(rec hardstate.SnapshotRecord) {
	s.mu.Lock()
	s.record, s.have = rec, true
	s.mu.Unlock()
	s.fsm.setConfig(rec.ConfigIndex, rec.Config)
	s.fsm.dropConfigs(rec.Index)
}

// List returns the current snapshot.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	rec, ok := s.current()
	if !ok {
		return nil, nil
	}
	return []*raft.SnapshotMeta{snapshotMeta(rec)}, nil
}

// Create starts a snapshot: either of the local state, or one that a leader sends.
func (s *snapshotStore) Create(_ raft.SnapshotVersion, index, term uint64, config raft.Configuration,
	configIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	return &snapshotSink{store: s, record: hardstate.SnapshotRecord{
		Index: index, Term: term, ConfigIndex: configIndex, Config: config,
	}}, nil
}

// Open streams the state for a follower. The state has usually advanced since the record
// was written, so the returned metadata describes the content of the stream and not the
// record; otherwise the follower's state would be ahead of its snapshot.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if strings.HasPrefix(id, installPrefix) {
		return &raft.SnapshotMeta{ID: id}, io.NopCloser(strings.NewReader(id)), nil
	}
	rec, r, err := s.export()
	if err != nil {
		return nil, nil, err
	}
	r.meta = snapshotMeta(rec)
	return r.meta, r, nil
}

// export streams the state.
func (s *snapshotStore) export() (rec hardstate.SnapshotRecord, _ *exportReader, err error) {
	hold := s.retention.Hold(s.fsm.applied.Load()) // before the view is opened: the log may be truncated in between
	view, err := s.fsm.sm.Export()
	if err != nil {
		hold.End()
		return rec, nil, fmt.Errorf("export state: %w", err)
	}
	if rec, err = s.describe(view.Applied()); err != nil {
		hold.End()
		return rec, nil, errors.Join(err, view.Close())
	}
	hold.Exported(rec.Index)
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.CloseWithError(errors.Join(statestream.Write(ctx, w, view), view.Close()))
	}()
	return rec, &exportReader{PipeReader: r, store: s, cancel: cancel, done: done, hold: hold}, nil
}

// describe returns the record of a snapshot taken at the position at.
func (s *snapshotStore) describe(at Position) (hardstate.SnapshotRecord, error) {
	rec, ok := s.current()
	if ok && at.Index == rec.State.Index {
		return rec, nil // only non-commands since
	}
	if at.Index == 0 || (ok && at.Index < rec.Index) {
		return rec, fmt.Errorf("state at %d is older than the snapshot at %d", at.Index, rec.Index)
	}
	config, err := s.fsm.configAt(at.Index)
	if err != nil {
		return rec, fmt.Errorf("describe state: %w", err)
	}
	return hardstate.SnapshotRecord{
		Index: at.Index, Term: at.Term, State: at,
		ConfigIndex: config.index, Config: config.config,
	}, nil
}

// exportReader is the reading end of an export. While it is open, the log that its receiver
// needs next is retained.
type exportReader struct {
	*io.PipeReader
	store  *snapshotStore
	meta   *raft.SnapshotMeta // which Raft has, and reads when the stream was sent
	cancel context.CancelFunc
	done   chan struct{}
	hold   *retention.Hold
}

// restart begins again with the current state, after Close. It changes the request and the
// metadata of the snapshot accordingly.
func (r *exportReader) restart(req *raft.InstallSnapshotRequest) error {
	rec, next, err := r.store.export()
	if err != nil {
		return err
	}
	next.meta = r.meta
	*r, *next.meta = *next, *snapshotMeta(rec)
	req.LastLogIndex, req.LastLogTerm = rec.Index, rec.Term
	req.Configuration, req.ConfigurationIndex = raft.EncodeConfiguration(rec.Config), rec.ConfigIndex
	return nil
}

// Read implements io.Reader.
func (r *exportReader) Read(p []byte) (int, error) {
	n, err := r.PipeReader.Read(p)
	if n > 0 {
		r.hold.Progressed()
	}
	return n, err
}

// abort makes a pending Read fail. Its receiver is a copy, since restart may follow before a
// concurrent call has begun.
func (r exportReader) abort() {
	r.cancel()
	_ = r.PipeReader.Close()
}

// installed records that follower has installed the stream, from the leader of term.
func (r *exportReader) installed(follower raft.ServerID, term uint64) {
	r.hold.Follow(follower, term)
}

// Close ends the export and waits for it.
func (r *exportReader) Close() error {
	r.abort()
	<-r.done
	r.hold.End()
	return nil
}

// snapshotSink finishes a virtual snapshot.
type snapshotSink struct {
	store  *snapshotStore
	record hardstate.SnapshotRecord
	local  bool // of the local state, not from a leader
}

func (k *snapshotSink) setState(at Position) {
	k.local = true
	k.record.State = at
	// During replay Raft may be behind what the state contained at start.
	if at.Index > k.record.Index {
		k.record.State = Position{Index: k.record.Index, Term: k.record.Term}
	}
}

// Write accepts nothing: a leader's data goes to the installer, not through Raft.
func (k *snapshotSink) Write(p []byte) (int, error) {
	return 0, fmt.Errorf("%d bytes written to a virtual snapshot", len(p))
}

// Close stores the record of a local snapshot. That of a leader's snapshot is stored when
// the state machine has switched.
func (k *snapshotSink) Close() error {
	if !k.local {
		return nil
	}
	return k.store.replace(k.record)
}

// superseded reports whether the current snapshot is newer.
func (k *snapshotSink) superseded() bool {
	now, ok := k.store.current()
	return ok && now.Index > k.record.Index
}

// Cancel abandons the snapshot.
func (k *snapshotSink) Cancel() error { return nil }

// ID identifies the snapshot.
func (k *snapshotSink) ID() string {
	if k.local {
		return snapshotID(k.record)
	}
	return installID(k.record)
}

// eofReader is a snapshot without data.
type eofReader struct{}

func (eofReader) Read([]byte) (int, error) { return 0, io.EOF }
