package invoker

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"platform/internal/errcode"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/partition/machine"
)

// Behaviors of a failure that override the retry policy.
const (
	retryByPolicy = protocol.Retry
	pauseNow      = protocol.Pause
	failNow       = protocol.Fail
)

// Codes of Error messages with separate entries in the catalogue.
const (
	codeInternal          = 500
	codeJournalMismatch   = 570
	codeProtocolViolation = 571
)

// failure is why an attempt failed and what follows.
type failure struct {
	machine.AttemptFailure
	behavior  protocol.Behavior
	nextDelay *time.Duration // requested by the endpoint
	reached   bool           // the request was sent to the endpoint
	orderly   bool           // the endpoint itself ended the attempt
}

// failureOf returns the failure for an error with a catalogue code; nil for nil.
func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	code, _ := errcode.Of(err)
	f := &failure{AttemptFailure: machine.AttemptFailure{
		Code: codeInternal, ErrorCode: string(code), Message: clip(plain(err.Error(), code), failureText),
	}}
	if code == errcode.RT0025 || code == errcode.RT0027 {
		f.behavior = pauseNow
	}
	return f
}

// broken returns the failure of a stream that ended early. It omits details that vary, the
// stream's number and our port: equal failures must look equal, in output and in the log.
func broken(err error) *failure {
	if _, ok := errors.AsType[*endpoint.FunctionError](err); ok {
		return failureOf(errcode.New(errcode.RT0007, "%w", err))
	}
	if errors.Is(err, endpoint.ErrFunctionResponse) {
		return failureOf(errcode.New(errcode.RT0012, "%w", err))
	}
	if reset, ok := errors.AsType[http2.StreamError](err); ok {
		err = fmt.Errorf("the stream was reset with %s", reset.Code)
	} else if op, ok := errors.AsType[*net.OpError](err); ok && op.Source != nil {
		err = fmt.Errorf("%s %s: %w", op.Op, op.Addr, op.Err)
	} else if endpoint.SendFailed(err) {
		err = errors.New("the connection was lost while sending")
	}
	return failureOf(errcode.New(errcode.RT0010, "connection to the endpoint: %w", err))
}

// plain removes the code, which is stored separately, from a message.
func plain(text string, code errcode.Code) string {
	return strings.TrimPrefix(text, "["+string(code)+"] ")
}

// failureText bounds the stored bytes of each text of a failure, loggedText the logged
// bytes of its message. The endpoint may send as much as fits into a message, and errors repeat names
// that it sends: a step with a longer text could not be proposed, so the invocation would never pause.
const (
	failureText = 64 << 10
	loggedText  = 4 << 10
)

// clip truncates a text that is longer than limit, and appends its length.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	note := fmt.Sprintf("… (cut; %d bytes)", len(text))
	return strings.ToValidUTF8(text[:limit-len(note)], "") + note
}

// failureFrom returns the failure described by an Error message.
func failureFrom(e *protocol.Failure) *failure {
	code := errcode.RT0007
	switch e.Code {
	case codeJournalMismatch:
		code = errcode.RT0016
	case codeProtocolViolation:
		code = errcode.RT0012
	}
	return &failure{
		AttemptFailure: machine.AttemptFailure{
			Code: e.Code, ErrorCode: string(code), Message: clip(e.Message, failureText), Stacktrace: clip(e.Stacktrace, failureText),
			RelatedIndex: e.RelatedIndex, RelatedName: clip(e.RelatedName, failureText), RelatedCommand: e.RelatedType,
		},
		behavior: e.Behavior, nextDelay: e.NextRetryDelay, orderly: true,
	}
}

// retryAfter parses the header of that name: seconds or a date. It returns nil if the
// header is missing or invalid, or requests no delay: retries without delay would never
// end.
func retryAfter(value string, now time.Time) *time.Duration {
	var d time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil && seconds > 0 {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil && at.After(now) {
		d = at.Sub(now)
	} else if at, err := time.Parse(time.RFC1123Z, value); err == nil && at.After(now) {
		d = at.Sub(now)
	} else {
		return nil
	}
	return &d
}
