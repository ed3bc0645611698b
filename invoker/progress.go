package invoker

import (
	"platform/internal/limits"
	"platform/partition/journal"
	"platform/partition/machine"
)

// smallStep is the size up to which a step joins the one before it whatever the size of
// that one, so that a large output and the end behind it are one log command.
const smallStep = 1 << 10

// batches cuts steps into runs of about limits.ProgressBatch bytes, each of which becomes
// one log command. A step that is larger has a command to itself, or with small ones.
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

// stepSize is about how many bytes a step takes in a log command.
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

// payloadSize is how many bytes of payloads steps have.
func payloadSize(steps []machine.Step) (size int) {
	for i := range steps {
		size += len(steps[i].Payload)
	}
	return size
}

// namesSize is how many bytes the strings have that identify the target of a call. They
// are part of every record and message about it.
func namesSize(r *journal.Request) int {
	size := len(r.Service) + len(r.Handler) + len(r.Key)
	for _, s := range []*string{r.Scope, r.LimitKey, r.IdempotencyKey} {
		if s != nil {
			size += len(*s)
		}
	}
	return size
}
