package codec

import (
	"fmt"

	"platform/partition/journal"
	"platform/partition/machine"
)

// What follows encodes parts of log entries and records that travel alone, between
// nodes.

// DecodeCommand reads what EncodeCommand wrote. The command points into b.
func DecodeCommand(b []byte) (machine.Command, error) {
	var c machine.Command
	err := readCommand(only(b), &c)
	return checked(c, "command", err)
}

// alone is the field of a part that is not inside of anything.
const alone = 1

// AppendResult appends a result to b.
func AppendResult(b []byte, v *journal.Result) []byte {
	w := writer{b: b}
	w.result(alone, v)
	return w.b
}

// DecodeResult reads a result, which points into b.
func DecodeResult(b []byte) (*journal.Result, error) { return part(b, "result", readResult) }

// AppendTarget appends a target to b.
func AppendTarget(b []byte, t *machine.Target) []byte {
	w := writer{b: b}
	w.target(alone, t)
	return w.b
}

// DecodeTarget reads a target, which points into b.
func DecodeTarget(b []byte) (*machine.Target, error) {
	if len(b) == 0 {
		return new(machine.Target), nil
	}
	return part(b, "target", readTarget)
}

// AppendFuture appends what an invocation waits for to b.
func AppendFuture(b []byte, f *journal.Future) ([]byte, error) {
	if tooDeep(f, 1) {
		return b, ErrTooDeep
	}
	w := writer{b: b}
	w.future(alone, f)
	return w.b, nil
}

// DecodeFuture reads what an invocation waits for, which points into b.
func DecodeFuture(b []byte) (*journal.Future, error) { return part(b, "future", readFuture) }

// AppendAttemptFailure appends why an attempt failed to b.
func AppendAttemptFailure(b []byte, f *machine.AttemptFailure) []byte {
	w := writer{b: b}
	w.attemptFailure(alone, f)
	return w.b
}

// DecodeAttemptFailure reads why an attempt failed, which points into b.
func DecodeAttemptFailure(b []byte) (*machine.AttemptFailure, error) {
	return part(b, "attempt failure", readAttemptFailure)
}

func part[T any](b []byte, name string, read func([]byte, *T) error) (*T, error) {
	r := reader{b: b}
	if !r.next() || r.field != alone {
		return nil, fmt.Errorf("decode %s: %w", name, ErrMalformed)
	}
	v := one(&r, read)
	if r.err == nil && !r.ended() {
		r.err = ErrMalformed
	}
	return checked(v, name, r.err)
}
