package kafka

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// startStreams starts a stream for each topic partition that belongs to this node and has
// none.
func (r *reader) startStreams(ctx context.Context, topics map[string]topicInfo, running *sync.WaitGroup) {
	for name, info := range topics {
		r.endEarlier(name, info.id)
		for p := range info.partitions {
			at := topicPartition{name, p}
			if s := r.stream(at); s != nil && s.runs() {
				continue
			}
			o := r.e.owner(r.e.ownerOf(r.sub.ID, name, p))
			if o == nil {
				r.mu.Lock()
				delete(r.streams, at)
				r.mu.Unlock()
				continue
			}
			start, listed := info.starts[p]
			if !listed || !r.startStream(ctx, newStream(r, o, at, info.id, start), running) {
				o.streams.Done()
			}
		}
	}
}

// endEarlier ends the streams of an earlier topic of the same name, which must not take records of
// this one for their own, and removes its ID from the client.
func (r *reader) endEarlier(name string, id [16]byte) {
	r.end(func(s *stream) bool { return s.at.topic == name && s.topic != id })
}

// endDeleted ends the streams of topics that matched the pattern and no longer exist.
func (r *reader) endDeleted(topics map[string]topicInfo) {
	r.end(func(s *stream) bool {
		_, exists := topics[s.at.topic]
		return !exists
	})
}

// end ends streams and removes their topics from the client.
func (r *reader) end(which func(*stream) bool) {
	r.mu.Lock()
	client := r.kafka
	var streams []*stream
	names := map[string]bool{}
	for at, s := range r.streams {
		if which(s) {
			streams = append(streams, s)
			names[at.topic] = true
		}
	}
	r.mu.Unlock()
	if len(streams) == 0 {
		return
	}
	for _, s := range streams {
		s.finish()
	}
	for _, s := range streams {
		<-s.done
	}
	client.PurgeTopicsFromConsuming(slices.Collect(maps.Keys(names))...)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range streams {
		delete(r.streams, s.at)
	}
}

// startStream runs a stream while its leadership lasts. It returns false if the reader is to end.
func (r *reader) startStream(ctx context.Context, s *stream, running *sync.WaitGroup) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return false
	}
	r.streams[s.at] = s
	lives, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.owner.ctx, cancel)
	running.Go(func() {
		defer s.owner.streams.Done()
		defer cancel()
		defer stop()
		s.run(lives)
	})
	return true
}

// stream returns the stream of a topic partition, nil if there is none.
func (r *reader) stream(at topicPartition) *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[at]
}

// runs reports whether a stream has not ended.
func (s *stream) runs() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// unfetched returns the topics of which this node is to read partitions that it does not fetch.
func (r *reader) unfetched(topics map[string]topicInfo) (names []string) {
	for name, info := range topics {
		for p := range info.partitions {
			if !r.e.leads(r.e.ownerOf(r.sub.ID, name, p)) {
				continue
			}
			if s := r.stream(topicPartition{name, p}); s == nil || !s.runs() || s.topic != info.id || !s.fetches() {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// fetches reports whether the client fetches a stream. Fetches then report the end of its topic
// partition.
func (s *stream) fetches() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched.active && !s.fetched.paused && s.failed == nil
}

// updateEnds tells streams where their topic partitions end.
func (r *reader) updateEnds(topics map[string]topicInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, s := range r.streams {
		if end, ok := topics[at.topic].ends[at.partition]; ok {
			s.mu.Lock()
			s.status.End = max(end, s.status.Position)
			s.mu.Unlock()
		}
	}
}
