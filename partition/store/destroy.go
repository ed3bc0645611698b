package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"platform/internal/pebbledb"
)

// Destroy durably deletes all rows of a partition. The caller must have stopped applying to
// it. Opening the partition afterwards returns empty tables. Destroy is idempotent.
func (db *DB) Destroy(ctx context.Context, id uint32) error {
	if err := db.remove(ctx, id); err != nil {
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

func (db *DB) remove(ctx context.Context, id uint32) error {
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
	span := partitionSpan(id)
	if err := db.remover.Remove(ctx, span); err != nil {
		return err
	}
	return db.pebble.DeleteRange(span.Start, span.End, pebble.NoSync)
}

// partitionSpan returns the keys of a partition: its header and both generations.
func partitionSpan(id uint32) pebble.KeyRange {
	lower := binary.BigEndian.AppendUint16(nil, uint16(id))
	return pebble.KeyRange{Start: lower, End: after(lower)}
}

// DamagedFiles receives the files of the database in which damage was found.
func (db *DB) DamagedFiles() <-chan pebbledb.DamagedFile { return db.damage.Files() }

// Affected returns which of the partitions have rows in a damaged file that cannot be read.
func (db *DB) Affected(file pebbledb.DamagedFile, partitions []uint32) ([]uint32, error) {
	return db.remover.Affected(file, partitions, partitionSpan)
}
