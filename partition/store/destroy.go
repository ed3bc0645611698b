package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Destroy durably deletes all rows of a partition. The caller must have stopped applying to
// it. Opening the partition afterwards returns empty tables. Destroy is idempotent.
func (db *DB) Destroy(ctx context.Context, id uint32) error {
	if err := db.remove(id); err != nil {
		return fmt.Errorf("remove partition %d: %w", id, err)
	}
	wait, err := db.Flush()
	if err == nil {
		err = wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove partition %d: %w", id, err)
	}
	return nil
}

func (db *DB) remove(id uint32) error {
	if id > maxPartition {
		return fmt.Errorf("ID exceeds the maximum of %d", maxPartition)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if p := db.partitions[uint16(id)]; p != nil {
		p.turn <- struct{}{}
		p.txn.drop()
		p.collected.Store(false)
		<-p.turn
		delete(db.partitions, uint16(id))
	}
	lower := binary.BigEndian.AppendUint16(nil, uint16(id)) // header and both generations
	return db.pebble.DeleteRange(lower, after(lower), pebble.NoSync)
}
