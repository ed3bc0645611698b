package partition

import (
	"slices"

	"platform/partition/journal"
	"platform/partition/machine"
)

// Handlers specify times as wall-clock time: they add a duration to their own clock. Timers
// use partition time. The leader converts when it proposes, so that the durations are right
// even if the two differ.

// timed returns p with its times converted to partition time, as a copy if anything
// changes. A payload that cannot be decoded is left for the machine to reject.
func (l *leadership) timed(p *machine.Progress) *machine.Progress {
	if !slices.ContainsFunc(p.Steps, func(s machine.Step) bool { return hasTime(&s) }) {
		return p
	}
	offset := l.clock.Offset()
	if offset == 0 {
		return p
	}
	out := *p
	out.Steps = slices.Clone(p.Steps)
	for i := range out.Steps {
		if s := &out.Steps[i]; hasTime(s) {
			s.Payload = l.timedPayload(s, offset)
		}
	}
	return &out
}

// hasTime reports whether a step may contain a time.
func hasTime(s *machine.Step) bool {
	return s.Kind == machine.StepCommand && (s.Type == journal.Sleep || s.Type == journal.OneWayCall)
}

func (l *leadership) timedPayload(s *machine.Step, offset clockOffset) []byte {
	var payload []byte
	var err error
	if s.Type == journal.Sleep {
		var c journal.SleepCommand
		if c, err = journal.ParseSleep(s.Payload); err == nil {
			payload, err = journal.DelaySleep(s.Payload, offset.toPartition(c.WakeUpTime))
		}
	} else {
		// The callee of another partition starts by that partition's time; its leader
		// converts when the call is delivered.
		local := s.Callee != nil && machine.PartitionOf(s.Callee.ID.PartitionKey(), l.p.cfg.Count) == l.p.id
		var c journal.OneWayCallCommand
		if c, err = journal.ParseOneWayCall(s.Payload); err == nil && (!local || c.InvokeTime == 0) {
			return s.Payload
		}
		if err == nil {
			payload, err = journal.DelayOneWayCall(s.Payload, offset.toPartition(c.InvokeTime))
		}
	}
	if err != nil {
		return s.Payload
	}
	return payload
}

// timedMessages returns d with its times converted to partition time, as a copy if anything
// changes.
func (l *leadership) timedMessages(d *machine.Deliver) *machine.Deliver {
	delayed := func(m machine.Message) bool {
		inv, ok := m.(*machine.Invoke)
		return ok && inv.StartAt > 0
	}
	if !slices.ContainsFunc(d.Messages, delayed) {
		return d
	}
	offset := l.clock.Offset()
	if offset == 0 {
		return d
	}
	out := *d
	out.Messages = slices.Clone(d.Messages)
	for i, m := range out.Messages {
		if delayed(m) {
			inv := *m.(*machine.Invoke)
			inv.StartAt = offset.toPartition(inv.StartAt)
			out.Messages[i] = &inv
		}
	}
	return &out
}
