package machinetest

import (
	"fmt"

	"platform/flowcontrol"
)

// flow dumps the tables of flow control.
func (s *State) flow(n Names) (rows []Row) {
	add := func(text, key string, args ...any) { rows = append(rows, Row{fmt.Sprintf(key, args...), text}) }
	for _, c := range s.AllCounters() {
		text := fmt.Sprintf("running=%d waiting=%d", c.Running, c.Waiting)
		if c.RingSeq != 0 {
			text += fmt.Sprintf(" turn=%d", c.RingSeq)
		}
		if c.Bucket != 0 {
			text += fmt.Sprintf(" full-at=%.3f", float64(c.Bucket)/1e6)
		}
		if c.WakeAt != 0 {
			text += fmt.Sprintf(" wake-at=%d", c.WakeAt)
		}
		add(text, "counter %s", c.Key)
	}
	for t, child := range s.Children() {
		kind := "counter"
		if child.Queue {
			kind = "queue"
		}
		add(kind+" "+child.Name, "ring %s[%d]", t.Ring, t.Seq)
	}
	for k, q := range s.VQueues() {
		text := ""
		if q.Paused {
			text = "paused "
			if p := q.Pause; p != nil {
				text = fmt.Sprintf("paused=%d by=%q reason=%q ", p.At, p.By, p.Reason)
			}
		}
		for stage, count := range q.Stages {
			if count > 0 {
				text += fmt.Sprintf("%s=%d ", flowcontrol.Stage(stage), count)
			}
		}
		add(fmt.Sprintf("%sin-line=%d turn=%d", text, q.Waiting, q.RingSeq), "vqueue %s %s", k.Counter(), k.Service)
	}
	for p, e := range s.Entries() {
		add(fmt.Sprintf("%s since %d", n.Of(e.ID), e.At), "line %s %s p%d[%d]", p.Queue.Counter(), p.Queue.Service, p.Priority, p.Seq)
	}
	return rows
}
