package kafka

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/partition/machine"
)

// A lane repeats a command soon after a partition accepts records again, and not often while it does
// not for long.
func TestLanesContinueSoonAfterAnOutage(t *testing.T) {
	for outage := 20 * time.Millisecond; outage <= time.Minute; outage += 10 * time.Millisecond {
		at, wait, attempts := time.Duration(0), minLaneRetry, 0
		for at < outage {
			at += wait
			wait = longer(wait)
			attempts++
		}
		require.LessOrEqual(t, at-outage, min(minLaneRetry+outage/4, maxLaneRetry), "%s", outage)
		require.LessOrEqual(t, attempts, 25+int(outage/time.Second), "%s", outage)
	}
}

// queue accepts records while it has room. Its invocations end at a rate.
type queue struct {
	limit    int64
	interval time.Duration // between ends
	length   int64
	ended    time.Time // of the last end
	stored   int64
	refused  int // records in commands that were not stored
}

func (q *queue) Count() uint32                                  { return 1 }
func (q *queue) AwaitEnd(context.Context, ids.Invocation) error { return nil }

func (q *queue) Ingest(_ context.Context, _ uint32, c *machine.Ingest) (machine.Outcome, error) {
	ends := int64(time.Since(q.ended) / q.interval)
	if ends >= q.length {
		q.length, q.ended = 0, time.Now()
	} else {
		q.length, q.ended = q.length-ends, q.ended.Add(time.Duration(ends)*q.interval)
	}
	n := min(int64(len(c.Records)), q.limit-q.length)
	q.length, q.stored, q.refused = q.length+n, q.stored+n, q.refused+len(c.Records)-int(n)
	if int(n) < len(c.Records) {
		return machine.Outcome{Code: machine.QueueFull, Last: q.stored - 1}, nil
	}
	return machine.Outcome{Last: q.stored - 1}, nil
}

// A lane keeps up with a queue that is full most of the time. Few of the records that it sends are
// refused, since each command is written to the log.
func TestALaneKeepsUpWithAFullQueue(t *testing.T) {
	for _, interval := range []time.Duration{time.Millisecond, 4 * time.Millisecond, 50 * time.Millisecond, 5 * time.Second} {
		t.Run(interval.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const records = 1000
				q := &queue{limit: 20, interval: interval, ended: time.Now()}
				begin := time.Now()
				e := New(Config{Partitions: q, Log: slog.New(slog.DiscardHandler)})
				s := newTestStream(e)
				s.mu.Lock()
				for i := range int64(records) {
					s.lane(0).add(t.Context(), s, item{s.window.add(&kgo.Record{Offset: i}), machine.IngestRecord{Offset: i}})
				}
				s.mu.Unlock()
				s.lanesRun.Wait()
				require.EqualValues(t, records, s.window.next)
				took := time.Since(begin)
				t.Logf("took %v, %d refused", took, q.refused)
				require.Less(t, took, records*interval*5/4+time.Second)
				require.Less(t, q.refused, 10*records)
			})
		})
	}
}

func newTestStream(e *Engine) *stream {
	r := newReader(e, subscription.Subscription{}, subscription.Cluster{}, true)
	return newStream(r, &owner{positions: &testOwner{s: &testPartition{}}}, topicPartition{"orders", 0}, [16]byte{}, 0)
}
