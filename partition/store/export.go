package store

import (
	"context"
	"errors"
	"fmt"

	"platform/partition/codec"
)

// Export is a consistent picture of all of a partition's rows, for another node.
type Export struct {
	view *View
	meta codec.Meta
}

// Export opens a picture of what is committed. The caller closes it.
func (p *Partition) Export() (*Export, error) {
	v := p.View()
	meta, err := v.Meta()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("export partition %d: %w", p.id, err), v.Close())
	}
	return &Export{v, meta}, nil
}

// Applied is the log entry that the picture contains everything up to.
func (e *Export) Applied() (index, term uint64) { return e.meta.Index, e.meta.Term }

// Each calls emit for every row in order of the keys, which are without partition
// and generation. The slices are valid during the call only. It stops with the
// first error.
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

// Close gives the picture up.
func (e *Export) Close() error { return e.view.Close() }
