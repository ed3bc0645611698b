package kafka

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"platform/partition/machine"
)

// toMirror schedules a stored position to be committed for the consumer group, which tools that
// monitor lag read.
func (r *reader) toMirror(at topicPartition, p machine.StreamPosition) {
	r.mu.Lock()
	r.mirror[at] = p
	r.mu.Unlock()
}

// commitRegularly commits stored positions until ctx ends. A broker that does not respond delays only
// this.
func (r *reader) commitRegularly(ctx context.Context) {
	tick := time.NewTicker(r.e.cfg.commitInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.commitMirror(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// commitMirror commits stored positions for the consumer group. The group has no members. A
// failure is only a warning: the server never reads these offsets while it runs.
func (r *reader) commitMirror(ctx context.Context) {
	select {
	case r.commit <- struct{}{}:
		defer func() { <-r.commit }()
	case <-ctx.Done():
		return
	}
	positions := r.mirrored()
	r.mu.Lock()
	admin, group := r.admin, r.client.Group
	r.mu.Unlock()
	if len(positions) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	offsets := kadm.Offsets{}
	for at, p := range positions {
		offsets.Add(kadm.Offset{Topic: at.topic, Partition: at.partition, At: p.Next, LeaderEpoch: int32(p.LeaderEpoch)}) //nolint:gosec // came from an int32
	}
	responses, err := admin.CommitOffsets(ctx, group, offsets)
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, p := range positions {
		response, ok := responses.Lookup(at.topic, at.partition)
		switch {
		case !ok:
		case response.Err == nil, errors.Is(response.Err, kerr.UnknownTopicOrPartition), errors.Is(response.Err, kerr.UnknownTopicID): // deleted
			if r.mirror[at] == p {
				delete(r.mirror, at)
			}
		case err == nil:
			err = response.Err
		}
	}
	if err == nil {
		r.warning = ""
		return
	}
	if r.warning == "" {
		r.log.Warn("could not commit positions for the consumer group", "group", group, "err", err)
	}
	r.warning = err.Error()
}

// mirrored returns the positions to commit. Those of ended leaderships are dropped: the next leader
// may have committed later ones.
func (r *reader) mirrored() map[topicPartition]machine.StreamPosition {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.mirror, func(at topicPartition, _ machine.StreamPosition) bool {
		s := r.streams[at]
		return s == nil || s.owner.ctx.Err() != nil
	})
	return maps.Clone(r.mirror)
}

// commitLast commits what is not committed yet when the reader ends, so that another consumer can
// continue there. An unavailable broker does not delay the end for long.
func (r *reader) commitLast() {
	ctx, cancel := context.WithTimeout(context.Background(), lastCommitTimeout)
	defer cancel()
	r.commitMirror(ctx)
}

const (
	// commitInterval is the default of Config.commitInterval.
	commitInterval    = 5 * time.Second
	lastCommitTimeout = 2 * time.Second
)
