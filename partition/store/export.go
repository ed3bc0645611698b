package store

import (
	"context"
	"errors"
	"fmt"

	"platform/partition/codec"
)

// Export is a consistent snapshot of all rows of a partition, to be copied to another node.
type Export struct {
	view *View
	meta codec.Meta
}

// Export opens a snapshot of the committed rows. The caller must close it.
func (p *Partition) Export() (*Export, error) {
	v := p.View()
	meta, err := v.Meta()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("export partition %d: %w", p.id, err), v.Close())
	}
	return &Export{v, meta}, nil
}

// Applied returns the last log entry applied to the snapshot.
func (e *Export) Applied() (index, term uint64) { return e.meta.Index, e.meta.Term }

// Each calls emit for every row in key order. Keys omit partition and generation, and
// large values appear as stubs and chunks. The slices are valid during the call only. Each
// stops at the first error.
func (e *Export) Each(ctx context.Context, emit func(key, value []byte) error) error {
	lower, upper := e.view.space.bounds()
	it, err := e.view.reader.scan(lower, upper)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if err = ctx.Err(); err == nil {
			err = emit(it.Key()[len(lower):], it.Value())
		}
	}
	return errors.Join(err, it.Error(), it.Close())
}

// Close releases the snapshot.
func (e *Export) Close() error { return e.view.Close() }
