package hardstate

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
	"platform/internal/varint"
)

// SnapshotKey is the key of a snapshot record in a storage.
type SnapshotKey string

// The keys.
const (
	// CurrentSnapshot is for the newest snapshot that is installed.
	CurrentSnapshot SnapshotKey = "Snapshot"
	// PendingSnapshot is for a snapshot that is being installed. Its record is written
	// before the state machine switches, so that a crash in between leaves state and record
	// reconcilable.
	PendingSnapshot SnapshotKey = "PendingSnapshot"
)

const snapshotRecordFormat = 1

// SnapshotRecord is the stored part of a virtual snapshot. The state machine durably
// contains everything up to State; the entries between State and Index, if any, are not
// commands.
type SnapshotRecord struct {
	Index       uint64
	Term        uint64
	State       logstore.Position
	ConfigIndex uint64
	Config      raft.Configuration
}

func (r SnapshotRecord) encode() []byte {
	b := []byte{snapshotRecordFormat}
	for _, v := range []uint64{r.Index, r.Term, r.State.Index, r.State.Term, r.ConfigIndex} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Config.Servers)))
	for _, s := range r.Config.Servers {
		b = append(b, byte(s.Suffrage))
		b = varint.AppendBytes(b, []byte(s.ID))
		b = varint.AppendBytes(b, []byte(s.Address))
	}
	return b
}

func decodeSnapshotRecord(b []byte) (SnapshotRecord, error) {
	var rec SnapshotRecord
	if len(b) == 0 || b[0] != snapshotRecordFormat {
		return rec, fmt.Errorf("unknown format of snapshot record: %w", logstore.ErrCorrupt)
	}
	r := varint.Reader{Rest: b[1:]}
	rec.Index, rec.Term = r.Uvarint(), r.Uvarint()
	rec.State = logstore.Position{Index: r.Uvarint(), Term: r.Uvarint()}
	rec.ConfigIndex = r.Uvarint()
	for n := r.Uvarint(); n > 0 && !r.Bad; n-- {
		if len(r.Rest) == 0 {
			r.Bad = true
			break
		}
		s := raft.Server{Suffrage: raft.ServerSuffrage(r.Rest[0])}
		r.Rest = r.Rest[1:]
		s.ID = raft.ServerID(r.Bytes())
		s.Address = raft.ServerAddress(r.Bytes())
		rec.Config.Servers = append(rec.Config.Servers, s)
	}
	if r.Bad || len(r.Rest) != 0 {
		return SnapshotRecord{}, fmt.Errorf("snapshot record: %w", logstore.ErrCorrupt)
	}
	return rec, nil
}

// Load reads the record; ok is false when there is none.
func (k SnapshotKey) Load(s raft.StableStore) (rec SnapshotRecord, ok bool, err error) {
	b, err := s.Get([]byte(k))
	if errors.Is(err, logstore.ErrKeyNotFound) || (err == nil && len(b) == 0) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, fmt.Errorf("load snapshot record: %w", err)
	}
	rec, err = decodeSnapshotRecord(b)
	return rec, err == nil, err
}

// Save stores the record durably.
func (k SnapshotKey) Save(s raft.StableStore, rec SnapshotRecord) error {
	if err := s.Set([]byte(k), rec.encode()); err != nil {
		return fmt.Errorf("save snapshot record: %w", err)
	}
	return nil
}

// Drop marks the record as absent.
func (k SnapshotKey) Drop(s raft.StableStore) error {
	if err := s.Set([]byte(k), nil); err != nil {
		return fmt.Errorf("drop snapshot record: %w", err)
	}
	return nil
}
