package codec

import (
	"fmt"

	"platform/partition/journal"
	"platform/partition/machine"
)

// The functions of this file encode parts of log entries and records that are sent
// between nodes by themselves.

// DecodeCommand decodes a command encoded by EncodeCommand. The command aliases b.
func DecodeCommand(b []byte) (machine.Command, error) {
	var c machine.Command
	err := readCommand(unframe(b), &c)
	return decoded(c, "command", err)
}

// standaloneField is the field number of a message that is not part of another one.
const standaloneField = 1

// AppendResult appends a result to b.
func AppendResult(b []byte, v *journal.Result) []byte {
	w := writer{b: b}
	w.result(standaloneField, v)
	return w.b
}

// DecodeResult decodes a result, which aliases b.
func DecodeResult(b []byte) (*journal.Result, error) {
	return decodeStandalone(b, "result", readResult)
}

// AppendTarget appends a target to b.
func AppendTarget(b []byte, t *machine.Target) []byte {
	w := writer{b: b}
	w.target(standaloneField, t)
	return w.b
}

// DecodeTarget decodes a target, which aliases b.
func DecodeTarget(b []byte) (*machine.Target, error) {
	if len(b) == 0 {
		return new(machine.Target), nil
	}
	return decodeStandalone(b, "target", readTarget)
}

// AppendFuture appends the future that an invocation awaits to b. It returns errTooDeep if
// readers would reject it.
func AppendFuture(b []byte, f *journal.Future) ([]byte, error) {
	if tooDeep(f, 1) {
		return b, errTooDeep
	}
	w := writer{b: b}
	w.future(standaloneField, f)
	return w.b, nil
}

// DecodeFuture decodes a future, which aliases b.
func DecodeFuture(b []byte) (*journal.Future, error) {
	return decodeStandalone(b, "future", readFuture)
}

// AppendAttemptFailure appends the failure of an attempt to b.
func AppendAttemptFailure(b []byte, f *machine.AttemptFailure) []byte {
	w := writer{b: b}
	w.attemptFailure(standaloneField, f)
	return w.b
}

// DecodeAttemptFailure decodes the failure of an attempt, which aliases b.
func DecodeAttemptFailure(b []byte) (*machine.AttemptFailure, error) {
	return decodeStandalone(b, "attempt failure", readAttemptFailure)
}

func decodeStandalone[T any](b []byte, name string, read func([]byte, *T) error) (*T, error) {
	r := reader{b: b}
	if !r.next() || r.field != standaloneField {
		return nil, fmt.Errorf("decode %s: %w", name, ErrMalformed)
	}
	v := decodeNew(&r, read)
	if r.err == nil && !r.atEnd() {
		r.err = ErrMalformed
	}
	return decoded(v, name, r.err)
}
