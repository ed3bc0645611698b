package offline

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/store"
	"platform/proto/raftlog"
)

// Row is one row of a partition's tables.
type Row struct {
	Table  string          `json:"table"`
	Key    string          `json:"key"`             // hex, from the table on
	ID     string          `json:"id,omitempty"`    // of the invocation, where the key begins with one
	Index  *uint32         `json:"index,omitempty"` // of the journal entry
	Record json.RawMessage `json:"record,omitempty"`
	Value  []byte          `json:"value,omitempty"` // base64, if there is no record
	Error  string          `json:"error,omitempty"` // why the value is not shown as a record
}

// Selection restricts rows; zero values restrict nothing.
type Selection struct {
	Table string
	ID    string // of an invocation
}

// records are the messages that values are, by table.
var records = map[string]func() proto.Message{
	"meta":      func() proto.Message { return new(raftlog.Meta) },
	"live":      func() proto.Message { return new(raftlog.Invocation) },
	"completed": func() proto.Message { return new(raftlog.Invocation) },
	"journal":   func() proto.Message { return new(raftlog.JournalEntry) },
	"promises":  func() proto.Message { return new(raftlog.Promise) },
	"locks":     func() proto.Message { return new(raftlog.Lock) },
	"outbox":    func() proto.Message { return new(raftlog.Message) },
	"counters":  func() proto.Message { return new(raftlog.Counter) },
	"vqueues":   func() proto.Message { return new(raftlog.VQueue) },
	"queued":    func() proto.Message { return new(raftlog.Queued) },
	"rings":     func() proto.Message { return new(raftlog.Child) },
	"rules":     func() proto.Message { return new(raftlog.RuleBook) },
}

// byID are the tables whose keys begin with the id of an invocation.
var byID = map[string]bool{"live": true, "completed": true, "journal": true, "notified": true}

// Rows calls visit for the rows of a partition, as they are on disk: log entries that
// were applied after the last flush are not in them. It stops when visit fails.
func (d *Directory) Rows(ctx context.Context, id uint32, only Selection, visit func(Row) error) error {
	groups, err := d.logs.Groups()
	if err != nil {
		return err
	}
	known := false
	for _, g := range groups {
		known = known || g == partition.GroupID(id)
	}
	if !known {
		return fmt.Errorf("the directory has nothing of partition %d", id)
	}
	tables, err := d.tables.Partition(id)
	if err != nil {
		return err
	}
	export, err := tables.Export()
	if err != nil {
		return err
	}
	err = export.Rows(ctx, nil, func(key, value []byte) (bool, error) {
		row := describeRow(key, value)
		if only.Table != "" && row.Table != only.Table || only.ID != "" && row.ID != only.ID {
			return true, nil
		}
		return true, visit(row)
	})
	return errors.Join(err, export.Close())
}

func describeRow(key, value []byte) Row {
	r := Row{Table: store.TableOf(key), Key: hex.EncodeToString(key)}
	rest := key[1:]
	if id := (ids.Invocation{}); byID[r.Table] && len(rest) >= len(id) {
		copy(id[:], rest)
		r.ID = id.String()
		if rest = rest[len(id):]; r.Table == "journal" && len(rest) == 4 {
			index := binary.BigEndian.Uint32(rest)
			r.Index = &index
		}
	}
	if message := records[r.Table]; message != nil {
		record, err := asJSON(value, message())
		if err == nil {
			r.Record = record
			return r
		}
		r.Error = err.Error()
	}
	r.Value = value
	return r
}
