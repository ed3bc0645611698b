package replicas

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"platform/internal/failpoint"
	"platform/partition"
)

const (
	// checkpointCommands is the number of applied commands of all partitions after which
	// the tables are flushed. It bounds the replay after a crash to about a second.
	checkpointCommands = 20_000
	// checkpointBytes is the size of the applied log entries of all partitions after which
	// the tables are flushed. Entries that are truncated while they are in a memtable of the
	// log database are never written to a table file.
	checkpointBytes = 8 << 20
	// checkpointAge bounds the time between applying a command and the flush.
	checkpointAge = 5 * time.Minute
	// checkpointTick is the interval of the checks.
	checkpointTick = 100 * time.Millisecond
)

// Checkpointer flushes the tables periodically and truncates the Raft logs up to the flushed
// index. The partitions share one database, so they are flushed together.
type Checkpointer struct {
	partitions func() iter.Seq[*partition.Partition]
	log        *slog.Logger
}

// NewCheckpointer returns the checkpointer of the partitions that have a replica here.
func NewCheckpointer(partitions func() iter.Seq[*partition.Partition], log *slog.Logger) *Checkpointer {
	return &Checkpointer{partitions: partitions, log: log}
}

// Run makes checkpoints until ctx ends.
func (c *Checkpointer) Run(ctx context.Context) error {
	tick := time.NewTicker(checkpointTick)
	defer tick.Stop()
	last := progress{at: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := c.progress()
		if !now.due(last) {
			continue
		}
		if err := c.checkpoint(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("checkpoint incomplete, the next one continues it", "err", err)
		}
		last = progress{now.commands, now.bytes, time.Now()}
	}
}

// progress is what all partitions have applied since the start, at one time.
type progress struct {
	commands, bytes uint64
	at              time.Time
}

// due reports whether a checkpoint should follow the last one.
func (p progress) due(last progress) bool {
	return p.commands-last.commands >= uint64(failpoint.Or(failpoint.CheckpointCommands, checkpointCommands)) ||
		p.bytes-last.bytes >= checkpointBytes ||
		p.commands != last.commands && p.at.Sub(last.at) >= checkpointAge
}

func (c *Checkpointer) progress() progress {
	now := progress{at: time.Now()}
	for p := range c.partitions() {
		now.commands += p.AppliedCommands()
		now.bytes += p.AppliedBytes()
	}
	return now
}

// Applied returns the number of log commands applied since the start.
func (c *Checkpointer) Applied() uint64 { return c.progress().commands }

func (c *Checkpointer) checkpoint(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for p := range c.partitions() {
		g.Go(func() error { return p.Checkpoint(ctx) })
	}
	return g.Wait()
}
