package codec

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/machine"
)

func (w *writer) flow(field protowire.Number, f *machine.Flow) {
	n := w.open(field, sizeHint)
	w.uint(fieldFlowStage, uint64(f.Stage))
	w.int(fieldFlowStageAt, f.StageAt)
	w.int(fieldFlowRunnableAt, f.RunnableAt)
	w.int(fieldFlowStartedAt, f.StartedAt)
	w.int(fieldFlowWaitsSince, f.WaitsSince)
	w.uint(fieldFlowStarts, uint64(f.Starts))
	w.uint(fieldFlowSuspensions, uint64(f.Suspensions))
	w.uint(fieldFlowPauses, uint64(f.Pauses))
	w.wait(fieldFlowLock, f.Lock)
	w.wait(fieldFlowRules, f.Rules)
	w.wait(fieldFlowThrottling, f.Throttling)
	w.uint(fieldFlowErrors, uint64(f.Errors))
	w.close(n)
}

func (w *writer) wait(field protowire.Number, v machine.Wait) {
	if v == (machine.Wait{}) {
		return
	}
	n := w.open(field, sizeHint)
	w.int(fieldWaitLatest, v.Latest)
	w.int(fieldWaitTotal, v.Total)
	w.close(n)
}

func readFlow(b []byte, f *machine.Flow) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldFlowStage:
			f.Stage = flowcontrol.Stage(r.u8())
		case fieldFlowStageAt:
			f.StageAt = r.i64()
		case fieldFlowRunnableAt:
			f.RunnableAt = r.i64()
		case fieldFlowStartedAt:
			f.StartedAt = r.i64()
		case fieldFlowWaitsSince:
			f.WaitsSince = r.i64()
		case fieldFlowStarts:
			f.Starts = r.u32()
		case fieldFlowSuspensions:
			f.Suspensions = r.u32()
		case fieldFlowPauses:
			f.Pauses = r.u32()
		case fieldFlowLock:
			decodeInto(&r, &f.Lock, readWait)
		case fieldFlowRules:
			decodeInto(&r, &f.Rules, readWait)
		case fieldFlowThrottling:
			decodeInto(&r, &f.Throttling, readWait)
		case fieldFlowErrors:
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
		case fieldWaitLatest:
			v.Latest = r.i64()
		case fieldWaitTotal:
			v.Total = r.i64()
		default:
			r.unknown("wait")
		}
	}
	return r.err
}

func (w *writer) pauseQueue(field protowire.Number, c *machine.PauseQueue) {
	n := w.open(field, sizeHint)
	w.id(fieldPauseQueueID, (*ids.Invocation)(&c.ID))
	w.string(fieldPauseQueueScope, c.Queue.Scope)
	w.string(fieldPauseQueueL1, c.Queue.LimitKey.L1)
	w.string(fieldPauseQueueL2, c.Queue.LimitKey.L2)
	w.string(fieldPauseQueueService, c.Queue.Service)
	w.bool(fieldPauseQueuePaused, c.Paused)
	if c.By != "" || c.Reason != "" {
		w.require(feature.Level4, "a pause of a vqueue with the client that requested it and a reason")
		w.string(fieldPauseQueueBy, c.By)
		w.string(fieldPauseQueueReason, c.Reason)
	}
	w.close(n)
}

func readPauseQueue(b []byte, c *machine.PauseQueue) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldPauseQueueID:
			r.id((*ids.Invocation)(&c.ID))
		case fieldPauseQueueScope:
			c.Queue.Scope = r.string()
		case fieldPauseQueueL1:
			c.Queue.LimitKey.L1 = r.string()
		case fieldPauseQueueL2:
			c.Queue.LimitKey.L2 = r.string()
		case fieldPauseQueueService:
			c.Queue.Service = r.string()
		case fieldPauseQueuePaused:
			c.Paused = r.bool()
		case fieldPauseQueueBy:
			c.By = r.string()
		case fieldPauseQueueReason:
			c.Reason = r.string()
		default:
			r.unknown("pause queue")
		}
	}
	return r.err
}

// AppendCounter appends the record of a counter to b.
func AppendCounter(b []byte, c *flowcontrol.Counter) []byte {
	w := writer{b: b}
	w.uint(fieldCounterRunning, c.Running)
	w.uint(fieldCounterWaiting, c.Waiting)
	w.uint(fieldCounterTurn, c.RingSeq)
	w.uint(fieldCounterRingHead, c.Ring.Head)
	w.uint(fieldCounterRingTail, c.Ring.Tail)
	w.int(fieldCounterBucket, int64(c.Bucket))
	w.int(fieldCounterWakeAt, c.WakeAt)
	w.queuePause(fieldCounterPause, c.Pause)
	return w.b
}

// DecodeCounter decodes the record of a counter.
func DecodeCounter(b []byte) (c flowcontrol.Counter, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldCounterRunning:
			c.Running = r.u64()
		case fieldCounterWaiting:
			c.Waiting = r.u64()
		case fieldCounterTurn:
			c.RingSeq = r.u64()
		case fieldCounterRingHead:
			c.Ring.Head = r.u64()
		case fieldCounterRingTail:
			c.Ring.Tail = r.u64()
		case fieldCounterBucket:
			c.Bucket = flowcontrol.Bucket(r.i64())
		case fieldCounterWakeAt:
			c.WakeAt = r.i64()
		case fieldCounterPause:
			c.Pause = decodeNew(&r, readQueuePause)
		default:
			r.unknown("counter")
		}
	}
	return decoded(c, "counter", r.err)
}

// AppendQueued appends the record of a slot of a vqueue to b.
func AppendQueued(b []byte, q flowcontrol.Queued) []byte {
	w := writer{b: b}
	w.id(fieldQueuedID, &q.ID)
	w.int(fieldQueuedAt, q.At)
	return w.b
}

// DecodeQueued decodes the record of a slot of a vqueue.
func DecodeQueued(b []byte) (q flowcontrol.Queued, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldQueuedID:
			r.id(&q.ID)
		case fieldQueuedAt:
			q.At = r.i64()
		default:
			r.unknown("vqueue slot")
		}
	}
	return decoded(q, "vqueue slot", r.err)
}

// AppendChild appends the record of a slot of a ring to b.
func AppendChild(b []byte, c flowcontrol.Child) []byte {
	w := writer{b: b}
	w.string(fieldChildName, c.Name)
	w.bool(fieldChildQueue, c.Queue)
	return w.b
}

// DecodeChild decodes the record of a slot of a ring, which aliases b.
func DecodeChild(b []byte) (c flowcontrol.Child, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldChildName:
			c.Name = r.string()
		case fieldChildQueue:
			c.Queue = r.bool()
		default:
			r.unknown("ring slot")
		}
	}
	return decoded(c, "ring slot", r.err)
}

// AppendVQueue appends the record of a vqueue to b.
func AppendVQueue(b []byte, q *flowcontrol.VQueue) []byte {
	w := writer{b: b}
	w.bool(fieldVQueuePaused, q.Paused)
	w.uint(fieldVQueueTurn, q.RingSeq)
	w.uint(fieldVQueueWaiting, q.Waiting)
	for i := range q.Lanes {
		w.lane(fieldVQueueLanes, uint64(i), q.Lanes[i])
	}
	used := len(q.Stages)
	for used > 0 && q.Stages[used-1] == 0 {
		used--
	}
	if used > 0 {
		n := w.open(fieldVQueueStages, sizeHint)
		for _, count := range q.Stages[:used] {
			w.uvarint(count)
		}
		w.close(n)
	}
	w.int(fieldVQueueCreatedAt, q.CreatedAt)
	w.int(fieldVQueueLastEnqueuedAt, q.LastEnqueuedAt)
	w.int(fieldVQueueLastStartAt, q.LastStartAt)
	w.int(fieldVQueueLastAttemptAt, q.LastAttemptAt)
	w.int(fieldVQueueLastFinishAt, q.LastFinishAt)
	w.int(fieldVQueueAvgQueue, int64(q.Averages.Queue))
	w.int(fieldVQueueAvgInbox, int64(q.Averages.Inbox))
	w.int(fieldVQueueAvgRun, int64(q.Averages.Run))
	w.int(fieldVQueueAvgSuspension, int64(q.Averages.Suspension))
	w.int(fieldVQueueAvgEndToEnd, int64(q.Averages.EndToEnd))
	w.int(fieldVQueueAvgRules, int64(q.Averages.Rules))
	w.int(fieldVQueueAvgThrottling, int64(q.Averages.Throttling))
	w.int(fieldVQueueAvgLock, int64(q.Averages.Lock))
	w.queuePause(fieldVQueuePause, q.Pause)
	return w.b
}

// queuePause writes a pause, unless it is nil.
func (w *writer) queuePause(field protowire.Number, p *flowcontrol.QueuePause) {
	if p == nil {
		return
	}
	n := w.open(field, sizeHint)
	w.string(fieldQueuePauseBy, p.By)
	w.string(fieldQueuePauseReason, p.Reason)
	w.int(fieldQueuePauseAt, p.At)
	w.close(n)
}

// readQueuePause copies the strings: records of vqueues and counters do not alias their input.
func readQueuePause(b []byte, p *flowcontrol.QueuePause) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldQueuePauseBy:
			p.By = strings.Clone(r.string())
		case fieldQueuePauseReason:
			p.Reason = strings.Clone(r.string())
		case fieldQueuePauseAt:
			p.At = r.i64()
		default:
			r.unknown("queue pause")
		}
	}
	return r.err
}

func (w *writer) lane(field protowire.Number, priority uint64, l flowcontrol.Lane) {
	if l == (flowcontrol.Lane{}) {
		return
	}
	n := w.open(field, sizeHint)
	w.uint(fieldLanePriority, priority)
	w.uint(fieldLaneHead, l.Head)
	w.uint(fieldLaneTail, l.Tail)
	w.close(n)
}

// DecodeVQueue decodes the record of a vqueue.
func DecodeVQueue(b []byte) (q flowcontrol.VQueue, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldVQueuePaused:
			q.Paused = r.bool()
		case fieldVQueueTurn:
			q.RingSeq = r.u64()
		case fieldVQueueWaiting:
			q.Waiting = r.u64()
		case fieldVQueueLanes:
			decodeInto(&r, &q.Lanes, readLane)
		case fieldVQueueStages:
			decodeInto(&r, &q, readStages)
		case fieldVQueueCreatedAt:
			q.CreatedAt = r.i64()
		case fieldVQueueLastEnqueuedAt:
			q.LastEnqueuedAt = r.i64()
		case fieldVQueueLastStartAt:
			q.LastStartAt = r.i64()
		case fieldVQueueLastAttemptAt:
			q.LastAttemptAt = r.i64()
		case fieldVQueueLastFinishAt:
			q.LastFinishAt = r.i64()
		case fieldVQueueAvgQueue:
			q.Averages.Queue = flowcontrol.Average(r.i64())
		case fieldVQueueAvgInbox:
			q.Averages.Inbox = flowcontrol.Average(r.i64())
		case fieldVQueueAvgRun:
			q.Averages.Run = flowcontrol.Average(r.i64())
		case fieldVQueueAvgSuspension:
			q.Averages.Suspension = flowcontrol.Average(r.i64())
		case fieldVQueueAvgEndToEnd:
			q.Averages.EndToEnd = flowcontrol.Average(r.i64())
		case fieldVQueueAvgRules:
			q.Averages.Rules = flowcontrol.Average(r.i64())
		case fieldVQueueAvgThrottling:
			q.Averages.Throttling = flowcontrol.Average(r.i64())
		case fieldVQueueAvgLock:
			q.Averages.Lock = flowcontrol.Average(r.i64())
		case fieldVQueuePause:
			q.Pause = decodeNew(&r, readQueuePause)
		default:
			r.unknown("vqueue")
		}
	}
	return decoded(q, "vqueue", r.err)
}

func readLane(b []byte, lanes *[flowcontrol.Priorities]flowcontrol.Lane) error {
	r := reader{b: b}
	priority, l := uint64(0), flowcontrol.Lane{}
	for r.next() {
		switch r.field {
		case fieldLanePriority:
			priority = r.u64()
		case fieldLaneHead:
			l.Head = r.u64()
		case fieldLaneTail:
			l.Tail = r.u64()
		default:
			r.unknown("lane")
		}
	}
	if r.err == nil && priority >= flowcontrol.Priorities {
		return fmt.Errorf("%w: lane has priority %d", ErrMalformed, priority)
	}
	if r.err == nil {
		lanes[priority] = l
	}
	return r.err
}

func readStages(b []byte, q *flowcontrol.VQueue) error {
	r := reader{b: b}
	for i := 0; !r.atEnd() && r.err == nil; i++ {
		if i == len(q.Stages) {
			return fmt.Errorf("%w: vqueue has too many stages", ErrMalformed)
		}
		q.Stages[i] = r.uvarint()
	}
	return r.err
}
