package invoker

import (
	"slices"

	"platform/flowcontrol"
	"platform/internal/ids"
)

// waiterQueues are the waiting invocations of a service, by vqueue and partition, served
// round robin.
type waiterQueues struct {
	len    int
	queues map[queueKey]*queue
	turns  fifo[*queue] // the same queues
}

type queueKey struct {
	queue flowcontrol.QueueKey
	s     *Session
}

// queue is the waiting invocations of a vqueue in a partition, in order of arrival.
type queue struct {
	key     queueKey
	waiters fifo[waiter]
}

func (l *waiterQueues) push(key queueKey, w waiter) {
	q := l.queues[key]
	if q == nil {
		if l.queues == nil {
			l.queues = map[queueKey]*queue{}
		}
		key.queue = key.queue.Clone()
		q = &queue{key: key}
		l.queues[key] = q
		l.turns.push(q)
	}
	q.waiters.push(w)
	l.len++
}

// maxAgedQueues bounds how many vqueues are searched for the oldest invocation. They are the ones
// served next, and within a vqueue the first is the oldest.
const maxAgedQueues = 1024

// oldest returns from when the oldest invocation waits; now if none does.
func (l *waiterQueues) oldest(now int64) int64 {
	waiting := l.turns.all[l.turns.head:]
	for _, q := range waiting[:min(len(waiting), maxAgedQueues)] {
		now = min(now, q.waiters.first().since)
	}
	return now
}

func (l *waiterQueues) pop() waiter {
	q := l.turns.pop()
	w := q.waiters.pop()
	if q.waiters.len() > 0 {
		l.turns.push(q)
	} else {
		delete(l.queues, q.key)
	}
	if l.len--; l.len == 0 {
		l.queues, l.turns = nil, fifo[*queue]{}
	}
	return w
}

// remove removes the invocations of a session, and returns how many these are.
func (l *waiterQueues) remove(s *Session) (removed int) {
	for key, q := range l.queues {
		if key.s == s {
			removed += q.waiters.len()
			delete(l.queues, key)
		}
	}
	if removed > 0 {
		others := slices.DeleteFunc(slices.Clone(l.turns.all[l.turns.head:]), func(q *queue) bool { return q.key.s == s })
		l.len, l.turns = l.len-removed, fifo[*queue]{all: others}
	}
	return removed
}

// waiter waits for a slot: a task, or an invocation whose record has not been read.
type waiter struct {
	t      *task // nil: identified by s, id and number
	s      *Session
	id     ids.Invocation
	number uint64
	share  *share // of the slot, once assigned
	since  int64  // Unix time in nanoseconds from which it waits

	opening *opening // of the attempt that starts then
}

func (w *waiter) session() *Session {
	if w.t != nil {
		return w.t.s
	}
	return w.s
}

// start starts an attempt with the assigned slot. It returns false, and the caller keeps
// the slot, if there is nothing left to do.
func (w *waiter) start() bool {
	t := w.t
	if t == nil {
		t = newTask(w.s, w.id, w.number)
		if !w.s.add(t) {
			return false
		}
	}
	return t.start(w.share, w.opening)
}

// fifo is a queue. It does not refer to removed elements, which may retain payloads; their places
// use at most as much memory as the remaining ones.
type fifo[T any] struct {
	all  []T
	head int
}

func (f *fifo[T]) len() int { return len(f.all) - f.head }

// first returns the element that pop would remove.
func (f *fifo[T]) first() T { return f.all[f.head] }

func (f *fifo[T]) push(v T) { f.all = append(f.all, v) }

func (f *fifo[T]) pop() (v T) {
	v, f.all[f.head] = f.all[f.head], v
	if f.head++; f.head >= 1024 && f.head > len(f.all)/2 {
		f.all, f.head = slices.Clone(f.all[f.head:]), 0
	} else if f.head == len(f.all) {
		f.all, f.head = f.all[:0], 0
	}
	return v
}
