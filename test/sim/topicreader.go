package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/machine"
	pb "platform/proto/service"
)

const (
	// fetchRecords and fetchDelay bound a fetch.
	fetchRecords = 6
	fetchDelay   = 60 * time.Millisecond
	// ingestTimeout is the time after which a reader repeats a command.
	ingestTimeout = 2 * time.Second
	// lateDelay is how much later a command may arrive once more.
	lateDelay = 3 * time.Second
)

// topicReader reads the topics of the partitions that a node leads, like ingress/kafka: it starts at
// the stored position, and sends the records of each receiving partition in a chain of Ingest
// commands. Commands of unknown outcome are repeated, and some arrive once more much later.
type topicReader struct{ l *incarnation }

var _ partition.Streams = (*topicReader)(nil)

// Lead implements partition.Streams.
func (r *topicReader) Lead(ctx context.Context, o *partition.StreamOwner) error {
	s := r.l.n.sim
	var wg sync.WaitGroup
	for _, t := range s.topics {
		if uint32(t.number)%s.opts.Partitions != o.Partition() { //nolint:gosec // few
			continue
		}
		rng := newRand(s.seed, fmt.Sprint("topic ", t.number, " ", o.Epoch()))
		wg.Go(func() {
			for ctx.Err() == nil {
				session := &readSession{topicReader: r, t: t, o: o, stream: t.stream, rng: rng, lanes: map[uint32]int64{}}
				if s.hasDefect(newStreams) {
					session.stream.TopicID = [16]byte{2, byte(rng.Uint32())}
				}
				session.run(ctx)
				pause(ctx, 50*time.Millisecond)
			}
		})
	}
	wg.Wait()
	return nil
}

// readSession reads a topic from the stored position on, until something fails.
type readSession struct {
	*topicReader
	t      *topic
	o      *partition.StreamOwner
	stream machine.Stream
	rng    *rand.Rand
	lanes  map[uint32]int64 // last offset known to be stored, by partition
}

func (r *readSession) run(ctx context.Context) {
	p, err := r.o.Position(r.t.stream)
	if err != nil {
		return
	}
	next := int64(0)
	if p != nil {
		next = p.Next
		r.t.stored(next) // also by a command of unknown outcome
	}
	saved := next
	for ctx.Err() == nil {
		if r.l.n.level() < feature.Level4 {
			pause(ctx, fetchDelay)
			continue
		}
		pause(ctx, time.Duration(r.rng.Int64N(int64(fetchDelay))))
		records := r.t.fetch(next, 1+r.rng.IntN(fetchRecords))
		if len(records) > 0 {
			if !r.handOver(ctx, records) {
				return
			}
			next = records[len(records)-1].offset + 1
		}
		if next > saved && (len(records) == 0 || r.rng.IntN(4) == 0) {
			if err := r.o.PutPosition(ctx, machine.StreamPosition{Stream: r.t.stream, Next: next, LeaderEpoch: -1}); err != nil {
				return
			}
			saved = next
			r.t.stored(next)
		}
	}
}

// handOver sends records to the partitions that receive them, and returns once they are stored.
func (r *readSession) handOver(ctx context.Context, records []record) bool {
	s := r.l.n.sim
	byPartition := make([][]machine.IngestRecord, s.opts.Partitions)
	for _, rec := range records {
		in := r.invoke(rec)
		to := s.owner(in.Invoke.ID)
		byPartition[to] = append(byPartition[to], in)
	}
	for to, list := range byPartition {
		if len(list) > 0 && !r.send(ctx, uint32(to), list) { //nolint:gosec // few
			return false
		}
	}
	return true
}

// send sends records to a partition until they are stored.
func (r *readSession) send(ctx context.Context, to uint32, records []machine.IngestRecord) bool {
	s := r.l.n.sim
	for ctx.Err() == nil && len(records) > 0 {
		prev, known := r.lanes[to]
		if !known {
			prev = machine.NoOffset
		}
		c := &machine.Ingest{Stream: r.stream, Prev: prev, Records: records}
		if r.rng.IntN(6) == 0 {
			r.repeatLater(to, c)
		}
		o, err := r.ingest(ctx, to, c)
		var level *feature.Error
		switch {
		case errors.As(err, &level):
			return false
		case err != nil:
			pause(ctx, 20*time.Millisecond)
			continue
		case o.Code != machine.OK && o.Code != machine.Existing && o.Code != machine.Gap:
			s.violate("records of topic %d from %d on: %v", r.t.number, records[0].Offset, o.Code)
			return false
		case o.Code == machine.Gap && o.Last < prev:
			s.violate("lost: partition %d has records of topic %d up to %d, %d was stored", to, r.t.number, o.Last, prev)
			return false
		}
		r.lanes[to] = o.Last
		for len(records) > 0 && records[0].Offset <= o.Last {
			records = records[1:]
		}
		if o.Code == machine.Gap && s.hasDefect(brokenChain) && len(records) > 0 {
			records = records[1:]
		}
	}
	return ctx.Err() == nil
}

func (r *readSession) ingest(ctx context.Context, to uint32, c *machine.Ingest) (machine.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, ingestTimeout)
	defer cancel()
	return r.l.directory.Partition(to).Ingest(ctx, c)
}

// repeatLater sends a command once more, possibly after another node has continued.
func (r *readSession) repeatLater(to uint32, c *machine.Ingest) {
	delay := time.Duration(r.rng.Int64N(int64(lateDelay)))
	r.l.n.sim.wg.Go(func() {
		pause(r.l.ctx, delay)
		if r.l.ctx.Err() == nil {
			_, _ = r.ingest(r.l.ctx, to, c)
		}
	})
}

// invoke returns the invocation of a record, the same for each reader.
func (r *readSession) invoke(rec record) machine.IngestRecord {
	payload, err := encode(&pb.InputCommandMessage{Value: &pb.Value{Content: digits(rec.offset)}})
	if err != nil {
		panic(err)
	}
	key := rec.objectKey(r.t)
	unique := r.stream.TopicID                                                       // distinct for a reader with the defect newStreams
	binary.BigEndian.PutUint64(unique[8:], uint64(rec.offset)<<8|uint64(r.t.number)) //nolint:gosec // not negative
	return machine.IngestRecord{Offset: rec.offset, Invoke: machine.Invoke{
		ID: ids.NewInvocation(ids.Route("", key), unique), Input: payload,
		Target:    machine.Target{Service: "Recorder", Key: key, Handler: "record", Type: target.ObjectExclusive},
		Source:    machine.Source{Kind: machine.FromSubscription, Subscription: r.stream.Subscription},
		Retention: machine.Retention{Completion: time.Minute.Milliseconds(), Journal: time.Minute.Milliseconds()},
	}}
}
