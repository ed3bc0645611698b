package codec

import (
	"fmt"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/machine"
)

func (w *writer) flow(field uint64, f *machine.Flow) {
	n := w.open(field, partSize)
	w.uint(1, uint64(f.Stage))
	w.int(2, f.StageAt)
	w.int(3, f.RunnableAt)
	w.int(4, f.StartedAt)
	w.int(5, f.WaitsSince)
	w.uint(6, uint64(f.Starts))
	w.uint(7, uint64(f.Suspensions))
	w.uint(8, uint64(f.Pauses))
	w.wait(9, f.Lock)
	w.wait(10, f.Rules)
	w.wait(11, f.Throttling)
	w.uint(12, uint64(f.Errors))
	w.close(n)
}

func (w *writer) wait(field uint64, v machine.Wait) {
	if v == (machine.Wait{}) {
		return
	}
	n := w.open(field, partSize)
	w.int(1, v.Latest)
	w.int(2, v.Total)
	w.close(n)
}

func readFlow(b []byte, f *machine.Flow) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			f.Stage = flowcontrol.Stage(r.u8())
		case 2:
			f.StageAt = r.i64()
		case 3:
			f.RunnableAt = r.i64()
		case 4:
			f.StartedAt = r.i64()
		case 5:
			f.WaitsSince = r.i64()
		case 6:
			f.Starts = r.u32()
		case 7:
			f.Suspensions = r.u32()
		case 8:
			f.Pauses = r.u32()
		case 9:
			into(&r, &f.Lock, readWait)
		case 10:
			into(&r, &f.Rules, readWait)
		case 11:
			into(&r, &f.Throttling, readWait)
		case 12:
			f.Errors = r.u32()
		default:
			r.unknown("flow")
		}
	}
	return r.err
}

func readWait(b []byte, v *machine.Wait) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			v.Latest = r.i64()
		case 2:
			v.Total = r.i64()
		default:
			r.unknown("wait")
		}
	}
	return r.err
}

func (w *writer) pauseQueue(field uint64, c *machine.PauseQueue) {
	n := w.open(field, partSize)
	w.id(1, (*ids.Invocation)(&c.ID))
	w.string(2, c.Queue.Scope)
	w.string(3, c.Queue.LimitKey.L1)
	w.string(4, c.Queue.LimitKey.L2)
	w.string(5, c.Queue.Service)
	w.bool(6, c.Paused)
	w.close(n)
}

func readPauseQueue(b []byte, c *machine.PauseQueue) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id((*ids.Invocation)(&c.ID))
		case 2:
			c.Queue.Scope = r.string()
		case 3:
			c.Queue.LimitKey.L1 = r.string()
		case 4:
			c.Queue.LimitKey.L2 = r.string()
		case 5:
			c.Queue.Service = r.string()
		case 6:
			c.Paused = r.bool()
		default:
			r.unknown("pause queue")
		}
	}
	return r.err
}

// AppendCounter appends the record of a counter to b.
func AppendCounter(b []byte, c *flowcontrol.Counter) []byte {
	w := writer{b: b}
	w.uint(1, c.Running)
	w.uint(2, c.Waiting)
	w.uint(3, c.Turn)
	w.uint(4, c.Ring.Head)
	w.uint(5, c.Ring.Tail)
	w.int(6, int64(c.Bucket))
	w.int(7, c.WakeAt)
	return w.b
}

// DecodeCounter reads the record of a counter.
func DecodeCounter(b []byte) (c flowcontrol.Counter, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			c.Running = r.u64()
		case 2:
			c.Waiting = r.u64()
		case 3:
			c.Turn = r.u64()
		case 4:
			c.Ring.Head = r.u64()
		case 5:
			c.Ring.Tail = r.u64()
		case 6:
			c.Bucket = flowcontrol.Bucket(r.i64())
		case 7:
			c.WakeAt = r.i64()
		default:
			r.unknown("counter")
		}
	}
	return checked(c, "counter", r.err)
}

// AppendQueued appends the record of a place in a vqueue to b.
func AppendQueued(b []byte, q flowcontrol.Queued) []byte {
	w := writer{b: b}
	w.id(1, &q.ID)
	w.int(2, q.At)
	return w.b
}

// DecodeQueued reads the record of a place in a vqueue.
func DecodeQueued(b []byte) (q flowcontrol.Queued, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			r.id(&q.ID)
		case 2:
			q.At = r.i64()
		default:
			r.unknown("place in a queue")
		}
	}
	return checked(q, "place in a queue", r.err)
}

// AppendChild appends the record of a place in a ring to b.
func AppendChild(b []byte, c flowcontrol.Child) []byte {
	w := writer{b: b}
	w.string(1, c.Name)
	w.bool(2, c.Queue)
	return w.b
}

// DecodeChild reads the record of a place in a ring, which points into b.
func DecodeChild(b []byte) (c flowcontrol.Child, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			c.Name = r.string()
		case 2:
			c.Queue = r.bool()
		default:
			r.unknown("place in a ring")
		}
	}
	return checked(c, "place in a ring", r.err)
}

// AppendVQueue appends the record of a vqueue to b.
func AppendVQueue(b []byte, q *flowcontrol.VQueue) []byte {
	w := writer{b: b}
	w.bool(1, q.Paused)
	w.uint(2, q.Turn)
	w.uint(3, q.Waiting)
	for i := range q.Lanes {
		w.lane(4, uint64(i), q.Lanes[i])
	}
	used := len(q.Stages)
	for used > 0 && q.Stages[used-1] == 0 {
		used--
	}
	if used > 0 {
		n := w.open(5, partSize)
		for _, count := range q.Stages[:used] {
			w.uvarint(count)
		}
		w.close(n)
	}
	w.int(6, q.CreatedAt)
	w.int(7, q.LastEnqueuedAt)
	w.int(8, q.LastStartAt)
	w.int(9, q.LastAttemptAt)
	w.int(10, q.LastFinishAt)
	for i, a := range averagesOf(q) {
		w.int(firstAverage+uint64(i), int64(*a))
	}
	return w.b
}

// firstAverage is the field of the first of averagesOf.
const firstAverage = 11

// averagesOf are the averages in the order of their fields.
func averagesOf(q *flowcontrol.VQueue) [8]*flowcontrol.Average {
	a := &q.Averages
	return [...]*flowcontrol.Average{&a.Queue, &a.Inbox, &a.Run, &a.Suspension, &a.EndToEnd, &a.Rules, &a.Throttling, &a.Lock}
}

func (w *writer) lane(field, priority uint64, l flowcontrol.Lane) {
	if l == (flowcontrol.Lane{}) {
		return
	}
	n := w.open(field, partSize)
	w.uint(1, priority)
	w.uint(2, l.Head)
	w.uint(3, l.Tail)
	w.close(n)
}

// DecodeVQueue reads the record of a vqueue.
func DecodeVQueue(b []byte) (q flowcontrol.VQueue, err error) {
	r := reader{b: b}
	for r.next() {
		switch {
		case r.field == 1:
			q.Paused = r.bool()
		case r.field == 2:
			q.Turn = r.u64()
		case r.field == 3:
			q.Waiting = r.u64()
		case r.field == 4:
			into(&r, &q.Lanes, readLane)
		case r.field == 5:
			into(&r, &q, readStages)
		case r.field == 6:
			q.CreatedAt = r.i64()
		case r.field == 7:
			q.LastEnqueuedAt = r.i64()
		case r.field == 8:
			q.LastStartAt = r.i64()
		case r.field == 9:
			q.LastAttemptAt = r.i64()
		case r.field == 10:
			q.LastFinishAt = r.i64()
		case r.field >= firstAverage && r.field < firstAverage+8:
			*averagesOf(&q)[r.field-firstAverage] = flowcontrol.Average(r.i64())
		default:
			r.unknown("vqueue")
		}
	}
	return checked(q, "vqueue", r.err)
}

func readLane(b []byte, lanes *[flowcontrol.Priorities]flowcontrol.Lane) error {
	r := reader{b: b}
	priority, l := uint64(0), flowcontrol.Lane{}
	for r.next() {
		switch r.field {
		case 1:
			priority = r.u64()
		case 2:
			l.Head = r.u64()
		case 3:
			l.Tail = r.u64()
		default:
			r.unknown("lane")
		}
	}
	if r.err == nil && priority >= flowcontrol.Priorities {
		return fmt.Errorf("%w: lane of priority %d", ErrMalformed, priority)
	}
	if r.err == nil {
		lanes[priority] = l
	}
	return r.err
}

func readStages(b []byte, q *flowcontrol.VQueue) error {
	r := reader{b: b}
	for i := 0; !r.ended() && r.err == nil; i++ {
		if i == len(q.Stages) {
			return fmt.Errorf("%w: vqueue with too many stages", ErrMalformed)
		}
		q.Stages[i] = r.uvarint()
	}
	return r.err
}
