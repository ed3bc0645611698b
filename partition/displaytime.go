package partition

import (
	"math"
	"slices"

	"platform/partition/journal"
	"platform/partition/machine"
)

// Stored times are partition time. Displayed times are wall-clock times with the same
// distance from now, so that ages and due times are right even if the two differ. This is
// the inverse of translate.go.

// shift is how many milliseconds partition time is ahead of wall-clock time.
type shift int64

// timeShift returns the shift for a read at this moment.
func (l *leadership) timeShift() shift { return shift(l.clock.Lead()) }

// time converts a partition time to wall-clock time. 0, which means none, and math.MaxInt64
// are unchanged.
func (s shift) time(t int64) int64 {
	if t == math.MaxInt64 {
		return t
	}
	return translated(t, -int64(s))
}

func (s shift) times(all ...*int64) {
	for _, t := range all {
		*t = s.time(*t)
	}
}

func (s shift) ending(e Ending) Ending {
	s.times(&e.ExpiresAt)
	return e
}

func (s shift) outcome(o machine.Outcome) machine.Outcome {
	s.times(&o.ExpiresAt, &o.StartAt)
	return o
}

// invocation converts the times of a record, which the caller must own.
func (s shift) invocation(inv *machine.Invocation) {
	if s == 0 || inv == nil {
		return
	}
	s.times(&inv.CreatedAt, &inv.ModifiedAt, &inv.ScheduledAt, &inv.InboxedAt, &inv.RunningAt, &inv.CompletedAt,
		&inv.StartAt, &inv.ProgressAt, &inv.ExpiresAt)
	s.times(&inv.CancelRequestedAt)
	if len(inv.Causes) > 0 {
		inv.Causes = slices.Clone(inv.Causes)
		for i := range inv.Causes {
			s.times(&inv.Causes[i].Since)
		}
	}
	if inv.LastPause != nil {
		p := *inv.LastPause
		s.times(&p.At, &p.ResumedAt)
		inv.LastPause = &p
	}
	if inv.Flow != nil {
		f := *inv.Flow
		s.times(&f.StageAt, &f.RunnableAt, &f.StartedAt, &f.WaitsSince)
		inv.Flow = &f
	}
}

// entry converts the time at which an entry was appended and, for a sleep, its wake-up
// time.
func (s shift) entry(e *journal.Entry) {
	if s == 0 {
		return
	}
	s.times(&e.AppendedAt)
	if e.Type != journal.Sleep || len(e.Payload) == 0 {
		return
	}
	if c, err := journal.ParseSleep(e.Payload); err == nil {
		if payload, err := journal.DelaySleep(e.Payload, s.time(c.WakeUpTime)); err == nil {
			e.Payload = payload
		}
	}
}

// events converts the times of a history, which the caller must own.
func (s shift) events(list []machine.Event) {
	if s == 0 {
		return
	}
	for i := range list {
		s.times(&list[i].At)
		if p := list[i].Pause; p != nil {
			s.times(&p.At, &p.ResumedAt)
		}
	}
}

func (s shift) queue(q *Queue) {
	if s == 0 || q == nil {
		return
	}
	s.times(&q.CreatedAt, &q.LastEnqueuedAt, &q.LastStartAt, &q.LastAttemptAt, &q.LastFinishAt, &q.Head.At)
}

// row converts the times of a row, which the caller must own.
func (s shift) row(r *Row) {
	s.invocation(r.Record.Invocation)
	s.entry(&r.Entry)
	s.events(r.Events)
	s.times(&r.Since)
	s.queue(r.Queue)
}
