package raftgroup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"platform/internal/raftgroup/logstore"
	"platform/internal/varint"

	"github.com/hashicorp/raft"
)

// Keys of the snapshot records in a group's Storage.
var (
	keySnapshot = []byte("Snapshot")
	// keyPending holds the record of a snapshot that is being installed. It is written
	// before the state machine switches, so that a crash in between leaves state and record
	// reconcilable.
	keyPending = []byte("PendingSnapshot")
)

const snapshotRecordFormat = 1

// snapshotRecord is the stored part of a virtual snapshot. The state machine durably
// contains everything up to State; the entries between State and Index, if any, are not
// commands.
type snapshotRecord struct {
	Index       uint64
	Term        uint64
	State       Position
	ConfigIndex uint64
	Config      raft.Configuration
}

func (r snapshotRecord) encode() []byte {
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

func decodeSnapshotRecord(b []byte) (snapshotRecord, error) {
	var rec snapshotRecord
	if len(b) == 0 || b[0] != snapshotRecordFormat {
		return rec, fmt.Errorf("unknown format of snapshot record: %w", logstore.ErrCorrupt)
	}
	r := varint.Reader{Rest: b[1:]}
	rec.Index, rec.Term = r.Uvarint(), r.Uvarint()
	rec.State = Position{Index: r.Uvarint(), Term: r.Uvarint()}
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
		return snapshotRecord{}, fmt.Errorf("snapshot record: %w", logstore.ErrCorrupt)
	}
	return rec, nil
}

// loadRecord reads a record; ok is false when there is none.
func loadRecord(s raft.StableStore, key []byte) (rec snapshotRecord, ok bool, err error) {
	b, err := s.Get(key)
	if errors.Is(err, logstore.ErrKeyNotFound) || (err == nil && len(b) == 0) {
		return rec, false, nil
	}
	if err != nil {
		return rec, false, fmt.Errorf("load snapshot record: %w", err)
	}
	rec, err = decodeSnapshotRecord(b)
	return rec, err == nil, err
}

// saveRecord stores a record durably.
func saveRecord(s raft.StableStore, key []byte, rec snapshotRecord) error {
	if err := s.Set(key, rec.encode()); err != nil {
		return fmt.Errorf("save snapshot record: %w", err)
	}
	return nil
}

// dropRecord marks a record as absent.
func dropRecord(s raft.StableStore, key []byte) error {
	if err := s.Set(key, nil); err != nil {
		return fmt.Errorf("drop snapshot record: %w", err)
	}
	return nil
}
