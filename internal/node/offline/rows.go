package offline

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/protobuf/proto"

	"platform/internal/ids"
	"platform/internal/pebbledb"
	"platform/partition"
	"platform/partition/store"
	"platform/proto/raftlog"
)

// Row is a row of the tables of a partition.
type Row struct {
	Table  string          `json:"table"`
	Key    string          `json:"key"`             // hex, starting with the table
	ID     string          `json:"id,omitempty"`    // of the invocation, where the key begins with one
	Index  *uint32         `json:"index,omitempty"` // of the journal entry
	Record json.RawMessage `json:"record,omitempty"`
	Value  []byte          `json:"value,omitempty"` // base64, if there is no record
	Error  string          `json:"error,omitempty"` // error of decoding the record
}

// Selection restricts rows; zero values do not restrict.
type Selection struct {
	Table string
	ID    string // of an invocation
}

// records maps tables to the message types of their values.
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

// byID are the tables whose keys begin with the ID of an invocation.
var byID = map[string]bool{"live": true, "completed": true, "journal": true, "notified": true}

// Rows calls visit for the rows of a partition on disk, which do not reflect log entries
// applied after the last flush. It stops when visit fails. Where rows cannot be read because a
// file is damaged, visit gets the key before them with the error, and Rows fails at the end.
func (d *Directory) Rows(ctx context.Context, id uint32, only Selection, visit func(Row) error) error {
	groups, err := d.groups()
	if err != nil {
		return err
	}
	if !slices.Contains(groups, partition.GroupID(id)) {
		return fmt.Errorf("the directory has nothing of partition %d", id)
	}
	if only.Table != "" && !slices.Contains(store.Tables(), only.Table) {
		return fmt.Errorf("there is no table %q; the tables are %s", only.Table, strings.Join(store.Tables(), ", "))
	}
	if only.ID != "" {
		if _, err := ids.ParseInvocation(only.ID); err != nil {
			return fmt.Errorf("%q is not the id of an invocation: %w", only.ID, err)
		}
	}
	tables, err := d.tables.Partition(id)
	if err != nil {
		return err
	}
	export, err := tables.Export()
	if err != nil {
		return err
	}
	err = readableRows(ctx, export, visit, func(key, value []byte) error {
		row := describeRow(key, value)
		if only.Table != "" && row.Table != only.Table || only.ID != "" && row.ID != only.ID {
			return nil
		}
		return visit(row)
	})
	return errors.Join(err, export.Close())
}

// readableRows calls visit for the rows that can be read, and gap for the key before each range that
// cannot. After damage it continues at the next key that does not begin like the last one that was read:
// with all its bytes but the last, then fewer, until a row can be read.
func readableRows(ctx context.Context, export *store.Export, gap func(Row) error, visit func(key, value []byte) error) error {
	var from []byte
	var damage error
	last, shared := []byte{0}, 1
	for {
		read := false
		err := export.Rows(ctx, from, func(key, value []byte) (bool, error) {
			last, read = append(last[:0], key...), true
			return true, visit(key, value)
		})
		if !pebble.IsCorruptionError(err) {
			if err == nil && damage != nil {
				return fmt.Errorf("rows are missing where a line has an error: %w", damage)
			}
			return err
		}
		if read || damage == nil {
			shared = len(last)
			damage = pebbledb.Explain(err)
			if err := gap(Row{Table: store.TableOf(last), Key: hex.EncodeToString(last), Error: "rows after this key cannot be read: " + damage.Error()}); err != nil {
				return err
			}
		} else if shared--; shared == 0 {
			last, shared = append(last[:0], from...), 1
		}
		if from = successor(last[:shared]); from == nil {
			return damage
		}
	}
}

// successor returns the smallest key that is larger than all that begin with prefix, nil if there is none.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			next := bytes.Clone(prefix[:i+1])
			next[i]++
			return next
		}
	}
	return nil
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
