package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"platform/partition/codec"
)

// errImport is wrapped when the rows of an Import are not a valid partition state.
var errImport = errors.New("imported rows are not a valid partition state")

// Import receives the rows of another replica into the inactive generation. They become
// visible with Commit; after a crash before that they are deleted. A partition has at most
// one Import at a time.
type Import struct {
	p     *Partition
	space space
	batch *pebble.Batch
	last  []byte
	key   []byte
}

// importBatch is the batch size in which rows are written to Pebble.
const importBatch = 1 << 20

// Import begins an import. It deletes the rows of the inactive generation.
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

// Put stores a row emitted by Export.Each; keys must be ascending.
func (i *Import) Put(key, value []byte) error {
	if len(key) == 0 || bytes.Compare(i.last, key) >= 0 {
		return fmt.Errorf("%w: key %x follows %x", errImport, key, i.last)
	}
	i.last = append(i.last[:0], key...)
	i.key = append(i.space.table(i.key[:0], key[0]), key[1:]...)
	if err := i.batch.Set(i.key, value, nil); err != nil {
		return fmt.Errorf("import row: %w", err)
	}
	if i.batch.Len() < importBatch {
		return nil
	}
	i.p.db.large.Await(i.p.db.pebble)
	return i.flush()
}

func (i *Import) flush() error {
	if err := i.batch.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("import rows: %w", err)
	}
	i.batch.Reset()
	return nil
}

// Commit durably and atomically replaces the partition's state with the received rows,
// whose applied index and term must be as given. After an error the old state stays active,
// and the caller must call Abort.
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
		return fmt.Errorf("%w: %w", errImport, err)
	}
	if meta.Index != index || meta.Term != term {
		return fmt.Errorf("%w: applied index is %d in term %d, expected %d in term %d", errImport, meta.Index, meta.Term, index, term)
	}
	// The header is written after all rows, so any flush that includes it includes them.
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
	i.switchOver(meta, large)
	return nil
}

// received reads the metadata and the large rows from the received rows.
func (i *Import) received() (meta codec.Meta, l large, err error) {
	r, err := newReader(i.p.db.pebble)
	if err != nil {
		return meta, l, err
	}
	var orphans []largeRow
	if meta, err = r.meta(i.space); err == nil {
		l, orphans, err = r.large(i.space, i.p.db.opts.LargeSetBytes)
	}
	if err := errors.Join(err, r.close()); err != nil {
		return meta, l, err
	}
	return meta, l, i.p.db.dropOrphans(i.space, orphans)
}

// header sets the active generation for the next start.
func (i *Import) header(generation byte) error {
	return i.p.db.pebble.Set(headerKey(i.p.id), []byte{generation}, pebble.NoSync)
}

// switchOver activates the imported rows and deletes the old ones. If these cannot be deleted,
// the next import or start does it.
func (i *Import) switchOver(meta codec.Meta, large large) {
	old := i.space.other()
	i.p.turn <- struct{}{}
	i.p.mu.Lock()
	i.p.txn.drop()
	i.p.collected.Store(false)
	i.p.space = i.space
	i.p.reset(meta)
	i.p.large = large
	i.p.failed = nil
	i.p.mu.Unlock()
	<-i.p.turn
	if o := i.p.observer.Load(); o != nil {
		(*o).Replaced()
	}
	err := errors.Join(i.batch.Close(), i.p.db.clear(old)) // open views keep their snapshot
	if err != nil {
		i.p.db.opts.Logger.Warn("rows replaced by an import not deleted yet", "partition_id", i.p.id, "err", err)
	}
}

// Abort deletes the received rows.
func (i *Import) Abort() error {
	if err := errors.Join(i.batch.Close(), i.p.db.clear(i.space)); err != nil {
		return fmt.Errorf("abort import of partition %d: %w", i.p.id, err)
	}
	return nil
}
