package metadata

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"platform/internal/errcode"
	"platform/internal/raftgroup"
)

// exporter reads the state at one index. It yields every record under "table/key",
// including the format version; the applied position is transferred separately.
type exporter struct {
	tx *bbolt.Tx
	at raftgroup.Position
}

// Export opens a read transaction on the state file.
func (f *fsm) Export() (raftgroup.Exporter, error) {
	tx, err := f.db.bolt.Begin(false)
	if err != nil {
		return nil, fmt.Errorf("export metadata: %w", err)
	}
	at, err := readApplied(tx)
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return &exporter{tx: tx, at: at}, nil
}

// Applied returns the position of the exported state.
func (e *exporter) Applied() raftgroup.Position { return e.at }

// Each yields all records in ascending order of their keys.
func (e *exporter) Each(ctx context.Context, emit func(key, value []byte) error) error {
	for _, table := range tables {
		prefix := []byte(table + "/")
		err := e.tx.Bucket([]byte(table)).ForEach(func(key, value []byte) error {
			if table == tableMeta && string(key) == appliedKey {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return emit(slices.Concat(prefix, key), value)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Close ends the read transaction.
func (e *exporter) Close() error { return e.tx.Rollback() }

// importer collects a state in memory, where every node holds it anyway, and installs it in
// one transaction.
type importer struct {
	fsm    *fsm
	writes []write
	format []byte
}

// Import starts with an empty state.
func (f *fsm) Import() (raftgroup.Importer, error) { return &importer{fsm: f}, nil }

// Put adds one record of an export.
func (i *importer) Put(key, value []byte) error {
	table, rest, ok := bytes.Cut(key, []byte("/"))
	if !ok || !slices.Contains(tables, string(table)) {
		return fmt.Errorf("import metadata: unknown key %q", key)
	}
	if _, err := unsealed(value); err != nil {
		return fmt.Errorf("import metadata: %s: %w", key, err)
	}
	if string(table) == tableMeta {
		if string(rest) == versionKey {
			i.format = bytes.Clone(value)
		}
		return nil
	}
	i.writes = append(i.writes, write{table: string(table), key: string(rest), value: bytes.Clone(value)})
	return nil
}

// Commit replaces the content of the state file and publishes it. If it fails, nothing has
// changed.
func (i *importer) Commit(_ context.Context, at raftgroup.Position) error {
	if i.format == nil {
		return errcode.New(errcode.META0011, "the imported metadata has no format version")
	}
	format, err := readFormat(i.format)
	if err != nil {
		return fmt.Errorf("import metadata: %w", err)
	}
	var st *state
	err = i.fsm.db.bolt.Update(func(tx *bbolt.Tx) (err error) {
		for _, table := range tables {
			if err := tx.DeleteBucket([]byte(table)); err != nil {
				return err
			}
			if _, err := tx.CreateBucket([]byte(table)); err != nil {
				return err
			}
		}
		for _, w := range i.writes {
			if err := tx.Bucket([]byte(w.table)).Put([]byte(w.key), w.value); err != nil {
				return err
			}
		}
		if err := errors.Join(putFormat(tx, max(format, formatVersion)), putApplied(tx, at)); err != nil {
			return err
		}
		st, err = readState(tx, at.Index) // an undecodable state must not be installed
		return err
	})
	if err != nil {
		return fmt.Errorf("import metadata: %w", err)
	}
	i.fsm.publish(&draft{state: *st, changed: true, layoutChanged: true, rulesChanged: true, subscriptionsChanged: true}, at)
	return nil
}

// Abort discards the collected records.
func (i *importer) Abort() error {
	i.writes = nil
	return nil
}
