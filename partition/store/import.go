package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"platform/partition/codec"
)

// ErrImport is wrapped when what was put into an Import is not a partition's state.
var ErrImport = errors.New("imported rows are not a partition's state")

// Import receives another replica's rows beside the rows in use, in the other
// generation. Until Commit nobody sees them, and after a crash before its end they
// are removed. There is one at a time per partition.
type Import struct {
	p     *Partition
	space space
	batch *pebble.Batch
	last  []byte
	key   []byte
}

// importBatch is how much is handed to Pebble at a time.
const importBatch = 1 << 20

// Import begins to receive a state.
func (p *Partition) Import() (*Import, error) {
	p.mu.RLock()
	i := &Import{p: p, space: p.space.other()}
	p.mu.RUnlock()
	if err := p.db.clear(i.space); err != nil {
		return nil, fmt.Errorf("import partition %d: %w", p.id, err)
	}
	i.batch = p.db.pebble.NewBatch()
	return i, nil
}

// Put stores a row as Export.Each has it; the keys must ascend.
func (i *Import) Put(key, value []byte) error {
	if len(key) == 0 || bytes.Compare(i.last, key) >= 0 {
		return fmt.Errorf("%w: key %x follows %x", ErrImport, key, i.last)
	}
	i.last = append(i.last[:0], key...)
	i.key = append(i.space.table(i.key[:0], key[0]), key[1:]...)
	if err := i.batch.Set(i.key, value, nil); err != nil {
		return fmt.Errorf("import row: %w", err)
	}
	if i.batch.Len() < importBatch {
		return nil
	}
	return i.flush()
}

func (i *Import) flush() error {
	if err := i.batch.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("import rows: %w", err)
	}
	i.batch.Reset()
	return nil
}

// Commit makes the received rows durable and the partition's state in one step.
// They must be of this log entry. When it fails the old state stays in use, and
// Abort is still to be called.
func (i *Import) Commit(ctx context.Context, index, term uint64) error {
	if err := i.commit(ctx, index, term); err != nil {
		return fmt.Errorf("import partition %d: %w", i.p.id, err)
	}
	return nil
}

func (i *Import) commit(ctx context.Context, index, term uint64) error {
	if err := i.flush(); err != nil {
		return err
	}
	meta, large, err := i.received()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrImport, err)
	}
	if meta.Index != index || meta.Term != term {
		return fmt.Errorf("%w: they are of entry %d in term %d, not %d in term %d", ErrImport, meta.Index, meta.Term, index, term)
	}
	// The header comes after all rows, so whatever flush it is part of has them too.
	if err := i.header(i.space.generation); err != nil {
		return err
	}
	wait, err := i.p.db.Flush()
	if err == nil {
		err = wait(ctx)
	}
	if err != nil {
		return errors.Join(err, i.header(i.space.other().generation))
	}
	return i.switchOver(meta, large)
}

// received is the partition's record among the received rows, and which of them are
// large.
func (i *Import) received() (meta codec.Meta, l large, err error) {
	r, err := newReader(i.p.db.pebble)
	if err != nil {
		return meta, l, err
	}
	var lost []largeRow
	if meta, err = r.meta(i.space); err == nil {
		l, lost, err = r.large(i.space)
	}
	if err := errors.Join(err, r.close()); err != nil {
		return meta, l, err
	}
	return meta, l, i.p.db.dropLost(i.space, lost)
}

// header says which generation the next start shall find.
func (i *Import) header(generation byte) error {
	return i.p.db.pebble.Set(headerKey(i.p.id), []byte{generation}, pebble.NoSync)
}

// switchOver begins to use the imported rows and removes the old ones.
func (i *Import) switchOver(meta codec.Meta, large large) error {
	old := i.space.other()
	i.p.mu.Lock()
	i.p.space = i.space
	i.p.reset(meta)
	i.p.large = large
	i.p.failed = nil
	i.p.mu.Unlock()
	if err := i.batch.Close(); err != nil {
		return err
	}
	return i.p.db.clear(old) // open views still see it
}

// Abort throws the received rows away.
func (i *Import) Abort() error {
	if err := errors.Join(i.batch.Close(), i.p.db.clear(i.space)); err != nil {
		return fmt.Errorf("abort import of partition %d: %w", i.p.id, err)
	}
	return nil
}
