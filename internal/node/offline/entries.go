package offline

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"platform/internal/raftgroup/logstore"
	"platform/partition/codec"
	"platform/proto/metadata"
	"platform/proto/raftlog"
)

// Entry is a log entry.
type Entry struct {
	Group      uint32          `json:"group"`
	Index      uint64          `json:"index"`
	Term       uint64          `json:"term,omitempty"`
	Type       string          `json:"type,omitempty"` // of Raft: LogCommand, LogNoop, LogConfiguration ...
	AppendedAt *time.Time      `json:"appended_at,omitempty"`
	Bytes      int             `json:"bytes"`
	Commands   json.RawMessage `json:"entry,omitempty"` // the decoded entry
	Servers    []raft.Server   `json:"servers,omitempty"`
	Error      string          `json:"error,omitempty"` // why the entry cannot be read or decoded
	Hex        string          `json:"hex,omitempty"`   // of an entry that cannot be decoded, or on request
}

// maxHex limits the bytes that are shown of an entry that cannot be decoded.
const maxHex = 4 << 10

// Entries calls visit for up to limit entries of a group's log from an index on, including
// entries that cannot be read, and returns the index of the first entry that the limit has left
// out, or 0. It stops when visit fails, and fails if the log has no such entries.
func (d *Directory) Entries(group uint32, from, to uint64, limit int, visit func(Entry) error) (next uint64, err error) {
	if err := d.checkGroup(group); err != nil {
		return 0, err
	}
	s, err := d.storage(group)
	if err != nil {
		return 0, err
	}
	first, err := s.FirstIndex()
	if err != nil {
		return 0, err
	}
	last, err := s.LastIndex()
	if err != nil {
		return 0, err
	}
	if to == 0 {
		to = math.MaxUint64
	}
	begin, end := max(first, from), min(last, to)
	if last == 0 {
		return 0, fmt.Errorf("the log of group %d is empty", group)
	}
	if begin > end {
		return 0, fmt.Errorf("the log of group %d has no such entries; it has %d to %d", group, first, last)
	}
	for i := begin; i <= end; i++ {
		if limit <= 0 {
			return i, nil
		}
		if err := visit(readEntry(s, group, i, maxHex)); err != nil {
			return 0, err
		}
		limit--
	}
	return 0, nil
}

// checkGroup fails if the directory has nothing of a group.
func (d *Directory) checkGroup(group uint32) error {
	known, err := d.groups()
	if err == nil && !slices.Contains(known, group) {
		err = fmt.Errorf("the directory has no group %d; \"platform-server inspect\" shows those it has", group)
	}
	return err
}

// readEntry describes an entry, with a limited number of its bytes if it cannot be decoded.
func readEntry(s logstore.Storage, group uint32, index uint64, most int) Entry {
	e := Entry{Group: group, Index: index}
	var log raft.Log
	if err := s.GetLog(index, &log); err != nil {
		e.Error = err.Error()
		return e
	}
	e.Term, e.Type, e.Bytes = log.Term, log.Type.String(), len(log.Data)
	if !log.AppendedAt.IsZero() {
		at := log.AppendedAt.UTC()
		e.AppendedAt = &at
	}
	var err error
	switch log.Type {
	case raft.LogConfiguration:
		e.Servers, err = configuration(log.Data)
	case raft.LogCommand:
		e.Commands, err = decode(group, log.Data)
	}
	if err != nil {
		e.Error = err.Error()
		e.Hex = hex.EncodeToString(log.Data[:min(most, len(log.Data))])
	}
	return e
}

// configuration decodes the servers of a configuration entry. The Raft library panics if
// the entry is damaged.
func configuration(data []byte) (servers []raft.Server, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decode configuration: %v", p)
		}
	}()
	return raft.DecodeConfiguration(data).Servers, nil
}

// decode converts the command entry of a group to JSON. It fails for an entry that a replica
// could not apply.
func decode(group uint32, data []byte) (json.RawMessage, error) {
	if group == MetadataGroup {
		return asJSON(data, new(metadata.Entry))
	}
	if _, _, err := codec.Decode(data); err != nil {
		return nil, err
	}
	return asJSON(data, new(raftlog.LogEntry))
}

func asJSON(data []byte, into proto.Message) (json.RawMessage, error) {
	if err := proto.Unmarshal(data, into); err != nil {
		return nil, fmt.Errorf("show as JSON: %w", err)
	}
	text, err := protojson.Marshal(into)
	if err != nil {
		return nil, fmt.Errorf("show as JSON: %w", err)
	}
	return text, nil
}
