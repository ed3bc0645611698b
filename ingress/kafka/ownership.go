package kafka

import (
	"context"
	"sync"
)

// startStreams starts a stream for each topic partition that belongs to this node and has
// none.
func (r *reader) startStreams(ctx context.Context, topics map[string]topicInfo, running *sync.WaitGroup) {
	for name, info := range topics {
		for p := range info.partitions {
			start, listed := info.starts[p]
			if !listed {
				continue
			}
			at := topicPartition{name, p}
			r.mu.Lock()
			current := r.streams[at]
			r.mu.Unlock()
			if current != nil {
				select {
				case <-current.done:
				default:
					if current.topic == info.id {
						continue
					}
					// The stream of the earlier topic must not mistake records of this one.
					current.finish()
					<-current.done
				}
			}
			o := r.e.owner(r.e.ownerOf(r.sub.ID, name, p))
			if o == nil {
				r.mu.Lock()
				delete(r.streams, at)
				r.mu.Unlock()
				continue
			}
			s := newStream(r, o, at, info.id, start)
			r.mu.Lock()
			stopping := r.stopping
			if !stopping {
				r.streams[at] = s
			}
			r.mu.Unlock()
			if stopping {
				o.streams.Done()
				return
			}
			lives, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(o.ctx, cancel)
			running.Go(func() {
				defer o.streams.Done()
				defer cancel()
				defer stop()
				s.run(lives)
			})
		}
	}
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
