package partition

import (
	"slices"

	"platform/partition/journal"
	"platform/partition/machine"
)

// Stored times are partition time. Displayed times are wall-clock times with the same
// distance from now, so that ages and due times are right even if the two differ. This is
// the inverse of partitiontime.go.

func (o clockOffset) times(all ...*int64) {
	for _, t := range all {
		*t = o.toWall(*t)
	}
}

func (o clockOffset) ending(e Ending) Ending {
	o.times(&e.ExpiresAt)
	return e
}

func (o clockOffset) outcome(out machine.Outcome) machine.Outcome {
	o.times(&out.ExpiresAt, &out.StartAt)
	return out
}

// invocation converts the times of a record, which the caller must own.
func (o clockOffset) invocation(inv *machine.Invocation) {
	if o == 0 || inv == nil {
		return
	}
	o.times(&inv.CreatedAt, &inv.ModifiedAt, &inv.ScheduledAt, &inv.InboxedAt, &inv.RunningAt, &inv.CompletedAt,
		&inv.StartAt, &inv.ProgressAt, &inv.ExpiresAt)
	o.times(&inv.CancelRequestedAt)
	if len(inv.Causes) > 0 {
		inv.Causes = slices.Clone(inv.Causes)
		for i := range inv.Causes {
			o.times(&inv.Causes[i].Since)
		}
	}
	if inv.LastPause != nil {
		p := *inv.LastPause
		o.times(&p.At, &p.ResumedAt)
		inv.LastPause = &p
	}
	if inv.Flow != nil {
		f := *inv.Flow
		o.times(&f.StageAt, &f.RunnableAt, &f.StartedAt, &f.WaitsSince)
		inv.Flow = &f
	}
}

// entry converts the time at which an entry was appended and, for a sleep, its wake-up
// time.
func (o clockOffset) entry(e *journal.Entry) {
	if o == 0 {
		return
	}
	o.times(&e.AppendedAt)
	if e.Type != journal.Sleep || len(e.Payload) == 0 {
		return
	}
	if c, err := journal.ParseSleep(e.Payload); err == nil {
		if payload, err := journal.DelaySleep(e.Payload, o.toWall(c.WakeUpTime)); err == nil {
			e.Payload = payload
		}
	}
}

// events converts the times of a history, which the caller must own.
func (o clockOffset) events(list []machine.Event) {
	if o == 0 {
		return
	}
	for i := range list {
		o.times(&list[i].At)
		if p := list[i].Pause; p != nil {
			o.times(&p.At, &p.ResumedAt)
		}
	}
}

func (o clockOffset) queue(q *Queue) {
	if o == 0 || q == nil {
		return
	}
	o.times(&q.CreatedAt, &q.LastEnqueuedAt, &q.LastStartAt, &q.LastAttemptAt, &q.LastFinishAt, &q.Head.At)
}

// row converts the times of a row, which the caller must own.
func (o clockOffset) row(r *Row) {
	o.invocation(r.Record.Invocation)
	o.entry(&r.Entry)
	o.events(r.Events)
	o.times(&r.Since)
	o.queue(r.Queue)
}
