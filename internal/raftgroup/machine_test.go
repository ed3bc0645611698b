package raftgroup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"platform/internal/varint"
)

// journal is a state machine that remembers every command in order. It keeps
// its state as a product does: in a database without write-ahead log, position
// and data in one batch.
//
// An entry is a batch of commands, each with its length in front; the result of
// a command is its number in the order of all commands.
type journal struct {
	db *pebble.DB

	mu      sync.Mutex // covers what follows
	at      Position
	count   uint64
	hash    uint32
	handed  []uint64 // indexes that Apply was given
	failAt  uint64   // entry to fail at
	flushes int
	imports int
}

var (
	journalMeta = []byte("m")
	errPlanted  = errors.New("planted failure")
)

func openJournal(dir string, fs vfs.FS) (*journal, error) {
	db, err := pebble.Open(dir, &pebble.Options{FS: fs, DisableWAL: true, Logger: quiet{}, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		return nil, err
	}
	j := &journal{db: db}
	v, closer, err := db.Get(journalMeta)
	if errors.Is(err, pebble.ErrNotFound) {
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	j.loadMeta(v)
	return j, nil
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(f string, a ...any) {
	panic(fmt.Sprintf(f, a...))
}

func (j *journal) loadMeta(v []byte) {
	r := varint.Reader{Rest: v}
	j.at = Position{Index: r.Uvarint(), Term: r.Uvarint()}
	j.count, j.hash = r.Uvarint(), uint32(r.Uvarint())
}

func (j *journal) meta() []byte {
	b := binary.AppendUvarint(nil, j.at.Index)
	b = binary.AppendUvarint(b, j.at.Term)
	b = binary.AppendUvarint(b, j.count)
	return binary.AppendUvarint(b, uint64(j.hash))
}

func journalKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte("c"), n) }

func (j *journal) Apply(entries []Entry) ([]any, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.db.NewBatch()
	defer b.Close()
	results := make([]any, len(entries))
	for i, e := range entries {
		if e.Index <= j.at.Index {
			return nil, fmt.Errorf("entry %d applied twice", e.Index)
		}
		if e.Index == j.failAt {
			return nil, errPlanted
		}
		j.handed = append(j.handed, e.Index)
		var numbers []uint64
		for r := (varint.Reader{Rest: e.Data}); len(r.Rest) > 0; {
			command := r.Bytes()
			if r.Bad {
				return nil, fmt.Errorf("entry %d is damaged", e.Index)
			}
			j.count++
			j.hash = crc32.Update(j.hash, crc32.IEEETable, command)
			if err := b.Set(journalKey(j.count), command, nil); err != nil {
				return nil, err
			}
			numbers = append(numbers, j.count)
		}
		results[i] = numbers
		j.at = Position{Index: e.Index, Term: e.Term}
	}
	if err := b.Set(journalMeta, j.meta(), nil); err != nil {
		return nil, err
	}
	return results, b.Commit(pebble.NoSync)
}

func (j *journal) Applied() Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.at
}

func (j *journal) Flush() (func(context.Context) error, error) {
	done, err := j.db.AsyncFlush()
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	j.flushes++
	j.mu.Unlock()
	return func(ctx context.Context) error {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

func (j *journal) Export() (Exporter, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &journalView{snap: j.db.NewSnapshot(), at: j.at}, nil
}

type journalView struct {
	snap *pebble.Snapshot
	at   Position
}

func (v *journalView) Applied() Position { return v.at }

func (v *journalView) Each(ctx context.Context, emit func(key, value []byte) error) error {
	it, err := v.snap.NewIterWithContext(ctx, nil)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := emit(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}

func (v *journalView) Close() error { return v.snap.Close() }

func (j *journal) Import() (Importer, error) { return &journalImport{j: j, b: j.db.NewBatch()}, nil }

type journalImport struct {
	j    *journal
	b    *pebble.Batch
	meta []byte
	last []byte
}

func (i *journalImport) Put(key, value []byte) error {
	if bytes.Compare(key, i.last) <= 0 {
		return fmt.Errorf("key %q after %q", key, i.last)
	}
	i.last = append(i.last[:0], key...)
	if bytes.Equal(key, journalMeta) {
		i.meta = append([]byte(nil), value...)
	}
	return i.b.Set(key, value, nil)
}

func (i *journalImport) Commit(_ context.Context, at Position) error {
	i.j.mu.Lock()
	defer i.j.mu.Unlock()
	// All keys a journal has, removed before the new ones: in the same batch.
	b := i.j.db.NewBatch()
	if err := b.DeleteRange([]byte("a"), []byte("z"), nil); err != nil {
		return err
	}
	if err := b.Apply(i.b, nil); err != nil {
		return err
	}
	if err := errors.Join(b.Commit(pebble.NoSync), i.j.db.Flush(), i.b.Close()); err != nil {
		return err
	}
	i.j.loadMeta(i.meta)
	i.j.imports++
	if i.j.at != at {
		return fmt.Errorf("imported state is at %v, announced at %v", i.j.at, at)
	}
	return nil
}

func (i *journalImport) Abort() error { return i.b.Close() }

// commands returns all commands in order.
func (j *journal) commands() ([]string, error) {
	it, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte("c"), UpperBound: []byte("d")})
	if err != nil {
		return nil, err
	}
	var out []string
	for ok := it.First(); ok; ok = it.Next() {
		out = append(out, string(it.Value()))
	}
	return out, it.Close()
}

func (j *journal) importCount() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.imports
}

func (j *journal) handedIndexes() []uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]uint64(nil), j.handed...)
}

// sealJournal is the envelope of a journal's entries.
func sealJournal(batch [][]byte) ([]byte, error) {
	var out []byte
	for _, c := range batch {
		out = varint.AppendBytes(out, c)
	}
	return out, nil
}
