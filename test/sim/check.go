package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Result is the result of a seed.
type Result struct {
	Seed       uint64       `json:"seed"`
	Violations []string     `json:"violations"`
	Operations []*operation `json:"operations"`
	Events     uint64       `json:"events"`   // hash of the trace
	Messages   uint64       `json:"messages"` // hash of the trace and of each message between nodes
	Frames     uint64       `json:"frames"`   // number of messages between nodes
	Virtual    float64      `json:"virtual"`  // seconds
	Trace      string       `json:"trace"`
	Log        string       `json:"-"` // log of the servers
}

func (s *Sim) result() *Result {
	r := &Result{Seed: s.seed, Trace: s.trace.text(), Frames: s.trace.count(), Virtual: s.trace.elapsed().Seconds()}
	r.Events, r.Messages = s.trace.hashes()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Violations = slices.Clone(s.violations)
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	for _, op := range s.history.ops {
		copied := *op
		r.Operations = append(r.Operations, &copied)
	}
	return r
}

// counterModel is the sequential specification of a counter.
var counterModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		var keys []string
		for _, o := range history {
			key := o.Input.(*operation).Key
			if byKey[key] == nil {
				keys = append(keys, key)
			}
			byKey[key] = append(byKey[key], o)
		}
		slices.Sort(keys)
		var out [][]porcupine.Operation
		for _, key := range keys {
			out = append(out, byKey[key])
		}
		return out
	},
	Init: func() any { return int64(0) },
	Step: func(state, input, _ any) (bool, any) {
		o := input.(*operation)
		value := state.(int64) + o.Delta
		return o.State == unknown || o.Got == value, value
	},
	DescribeOperation: func(input, _ any) string { return input.(*operation).String() },
}

// Check checks that the counters are linearizable. It must be called outside the bubble,
// where time is real.
func (r *Result) Check() {
	var history []porcupine.Operation
	for i, o := range r.Operations {
		if o.State == failed || o.State == unknown && o.Delta == 0 {
			continue
		}
		p := porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Start), Return: int64(o.End)}
		if o.State == unknown || o.ResolvedLate {
			p.ClientId, p.Return = -1-i, math.MaxInt64
		}
		history = append(history, p)
	}
	verdict, info := porcupine.CheckOperationsVerbose(counterModel, history, time.Minute)
	switch verdict {
	case porcupine.Illegal:
		r.Violations = append(r.Violations, "not linearizable: "+describeIllegal(history, info))
	case porcupine.Unknown:
		r.Violations = append(r.Violations, "linearizability check timed out after a minute")
	}
}

// describeIllegal describes the keys whose operations are not linearizable.
func describeIllegal(history []porcupine.Operation, info porcupine.LinearizationInfo) string {
	text := ""
	parts := counterModel.Partition(history)
	for i, partial := range info.PartialLinearizations() {
		longest := 0
		for _, p := range partial {
			longest = max(longest, len(p))
		}
		if longest < len(parts[i]) {
			text += fmt.Sprintf("%s: %d of %d operations can be linearized;", parts[i][0].Input.(*operation).Key, longest, len(parts[i]))
		}
	}
	return text
}
