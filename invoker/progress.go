package invoker

import (
	"platform/internal/limits"
	"platform/partition/journal"
	"platform/partition/machine"
)

// smallStep is the size up to which a step joins the previous one regardless of its size,
// so that a large output and the following end are one log command.
const smallStep = 1 << 10

// batches splits steps into runs of about limits.ProgressBatch bytes, each of which becomes
// one log command. A larger step gets a separate command, possibly with small ones.
func batches(steps []machine.Step) [][]machine.Step {
	var out [][]machine.Step
	first, size, small := 0, 0, 0
	for i := range steps {
		n := stepSize(&steps[i])
		if n <= smallStep {
			small += n
		}
		joins := size+n <= limits.ProgressBatch || n <= smallStep && small <= limits.ProgressBatch
		if i > first && !joins {
			out = append(out, steps[first:i:i])
			first, size, small = i, 0, 0
		}
		size += n
	}
	return append(out, steps[first:])
}

// stepSize returns the approximate size of a step in a log command.
func stepSize(s *machine.Step) int {
	size := 64 + len(s.Payload)
	if s.Failure != nil {
		size += len(s.Failure.Message) + len(s.Failure.Stacktrace)
	}
	if s.Await != nil {
		for id := range s.Await.Leaves() {
			size += 8 + len(id.Name)
		}
	}
	return size
}

// payloadSize returns the bytes of payloads in steps.
func payloadSize(steps []machine.Step) (size int) {
	for i := range steps {
		size += len(steps[i].Payload)
	}
	return size
}

// namesSize returns the bytes of the strings that identify the target of a call. They are
// part of every record and message about it.
func namesSize(r *journal.Request) int {
	size := len(r.Service) + len(r.Handler) + len(r.Key)
	for _, s := range []*string{r.Scope, r.LimitKey, r.IdempotencyKey} {
		if s != nil {
			size += len(*s)
		}
	}
	return size
}
