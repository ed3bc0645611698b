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
	// checkpointCommands is after how many applied commands, over all partitions, the
	// tables are made durable. It bounds what a start after a crash replays: about
	// a second's work.
	checkpointCommands = 20_000
	// checkpointAge is how long applied commands wait for that at most.
	checkpointAge = 5 * time.Minute
	// checkpointTick is how often the node looks.
	checkpointTick = 500 * time.Millisecond
)

// Checkpointer makes the tables durable now and then and cuts the Raft logs behind
// them. The partitions share one database, so they are written together.
type Checkpointer struct {
	partitions func() iter.Seq[*partition.Partition]
	log        *slog.Logger
}

// NewCheckpointer returns the checkpointer of the partitions that have a replica here.
func NewCheckpointer(partitions func() iter.Seq[*partition.Partition], log *slog.Logger) *Checkpointer {
	return &Checkpointer{partitions: partitions, log: log}
}

// Run works until ctx ends.
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
			c.log.Warn("checkpoint incomplete, the next one will make up for it", "err", err)
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
