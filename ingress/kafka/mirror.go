package kafka

import (
	"context"
	"maps"

	"github.com/twmb/franz-go/pkg/kadm"

	"platform/partition/machine"
)

// toMirror notes a stored position that is to be committed for the consumer group, where the
// usual tools for lag look.
func (r *reader) toMirror(at topicPartition, p machine.StreamPosition) {
	r.mu.Lock()
	r.mirror[at] = p
	r.mu.Unlock()
}

// commitMirror commits stored positions for the consumer group. The group has no members. A
// failure is only a warning: the server never reads these offsets while it runs.
func (r *reader) commitMirror(ctx context.Context) {
	r.mu.Lock()
	positions := maps.Clone(r.mirror)
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
	if err == nil {
		err = responses.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.warning == "" {
			r.log.Warn("could not commit positions for the consumer group", "group", group, "err", err)
		}
		r.warning = err.Error()
		return
	}
	r.warning = ""
	for at, p := range positions {
		if r.mirror[at] == p {
			delete(r.mirror, at)
		}
	}
}
