package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// assign makes the client fetch a topic partition for a session of a stream.
func (r *reader) assign(at topicPartition, offset kgo.Offset, s *stream, session uint64) {
	r.enqueue(assignment{at, offset, s, session})
}

// unassign makes the client stop fetching a topic partition.
func (r *reader) unassign(at topicPartition) { r.enqueue(assignment{at: at}) }

// enqueue schedules assignments to be made between two polls: the next poll then returns only
// records fetched for the new assignment.
func (r *reader) enqueue(a assignment) {
	r.mu.Lock()
	r.pending = append(r.pending, a)
	if r.interrupt != nil {
		r.interrupt()
	}
	r.mu.Unlock()
}

// pollRecords bounds the records of one poll.
const pollRecords = 2000

// poll passes records to the streams until ctx ends.
func (r *reader) poll(ctx context.Context, client *kgo.Client, inflater *inflater) {
	assigned := map[topicPartition]assignment{}
	for ctx.Err() == nil {
		r.e.memory.wait(ctx)
		polling := r.carryOut(ctx, client, assigned)
		fetches := client.PollRecords(polling, pollRecords)
		if client.BufferedFetchRecords() == 0 {
			inflater.polled()
		}
		r.mu.Lock()
		r.interrupt()
		r.interrupt = nil
		r.mu.Unlock()
		fetches.EachTopic(func(t kgo.FetchTopic) {
			if t.Topic == "" {
				return // the poll was interrupted
			}
			t.EachPartition(func(p kgo.FetchPartition) {
				at := topicPartition{t.Topic, p.Partition}
				if a, ok := assigned[at]; ok {
					a.stream.offer(&p, t.TopicID, a.session)
				}
			})
		})
	}
}

// carryOut applies the pending assignments and returns the context of the next poll.
func (r *reader) carryOut(ctx context.Context, client *kgo.Client, assigned map[topicPartition]assignment) context.Context {
	for {
		pending, polling := r.takePending(ctx)
		if len(pending) == 0 {
			return polling
		}
		assign(client, assigned, pending)
	}
}

// takePending returns the pending assignments or, if there are none, the context of the next poll.
func (r *reader) takePending(ctx context.Context) (pending []assignment, polling context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pending, r.pending = r.pending, nil; len(pending) == 0 {
		polling, r.interrupt = context.WithCancel(ctx)
	}
	return pending, polling
}

// assign makes a client read what the last assignment of each topic partition says.
func assign(client *kgo.Client, assigned map[topicPartition]assignment, pending []assignment) {
	last := make(map[topicPartition]assignment, len(pending))
	for _, a := range pending {
		last[a.at] = a
	}
	remove, add := map[string][]int32{}, map[string]map[int32]kgo.Offset{}
	for at, a := range last {
		if _, ok := assigned[at]; ok {
			remove[at.topic] = append(remove[at.topic], at.partition)
			delete(assigned, at)
		}
		if a.stream != nil {
			if add[at.topic] == nil {
				add[at.topic] = map[int32]kgo.Offset{}
			}
			add[at.topic][at.partition] = a.offset
			assigned[at] = a
		}
	}
	if len(remove) > 0 {
		client.ResumeFetchPartitions(remove)
		client.RemoveConsumePartitions(remove)
	}
	if len(add) > 0 {
		client.AddConsumePartitions(add)
	}
}
