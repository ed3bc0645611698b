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
	// checkpointAge bounds the time between applying a command and the flush.
	checkpointAge = 5 * time.Minute
	// checkpointTick is the interval of the checks.
	checkpointTick = 500 * time.Millisecond
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
	var done uint64
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		applied := c.Applied()
		if applied-done < uint64(failpoint.Or(failpoint.CheckpointCommands, checkpointCommands)) && (applied == done || time.Since(last) < checkpointAge) {
			continue
		}
		if err := c.checkpoint(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("checkpoint incomplete, the next one continues it", "err", err)
		}
		done, last = applied, time.Now()
	}
}

// Applied returns the number of log commands applied since the start.
func (c *Checkpointer) Applied() (n uint64) {
	for p := range c.partitions() {
		n += p.Commands()
	}
	return n
}

func (c *Checkpointer) checkpoint(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for p := range c.partitions() {
		g.Go(func() error { return p.Checkpoint(ctx) })
	}
	return g.Wait()
}
