package protocol

import (
	"errors"
	"time"

	"platform/internal/errcode"
	"platform/partition/journal"
	"platform/proto/service"
)

var (
	errNoResult     = errors.New("it has no result")
	errNoCompletion = errors.New("it has no completion id")
	errNoFuture     = errors.New("it has no future")
)

// undecodable returns the error for a payload that does not match its message type.
func undecodable(t Type, err error) error {
	return errcode.New(errcode.RT0012, "message %s cannot be decoded: %w", Name(t), err)
}

// ParseRunProposal decodes the proposed result of a side effect: the completion ID, and the
// payload of the RunCompletion to record.
func ParseRunProposal(payload []byte) (completion uint32, notification []byte, err error) {
	if err := checkPairs(ProposeRunCompletion, payload); err != nil {
		return 0, nil, err
	}
	completion, notification, err = journal.RunCompletionOf(payload)
	if err == nil && completion == 0 {
		err = errNoCompletion
	}
	if err != nil {
		return 0, nil, undecodable(ProposeRunCompletion, err)
	}
	return completion, notification, nil
}

// Behavior is the requested reaction to an Error message (protocol 7).
type Behavior uint8

// The behaviors.
const (
	Retry Behavior = iota
	Pause
	Fail
)

// Failure is a decoded Error message.
type Failure struct {
	Code           uint32
	Message        string
	Stacktrace     string
	RelatedIndex   *uint32
	RelatedName    string
	RelatedType    Type
	NextRetryDelay *time.Duration
	Behavior       Behavior
}

// maxDelay bounds the retry delay requested by an endpoint, to avoid overflow.
const maxDelay = 100 * 365 * 24 * time.Hour

// ParseError decodes an Error message.
func ParseError(v Version, payload []byte) (Failure, error) {
	var m service.ErrorMessage
	if err := m.UnmarshalVT(payload); err != nil {
		return Failure{}, undecodable(Error, err)
	}
	f := Failure{
		Code: m.Code, Message: m.Message, Stacktrace: m.Stacktrace,
		RelatedIndex: m.RelatedCommandIndex, RelatedName: m.GetRelatedCommandName(),
		RelatedType: Type(m.GetRelatedCommandType()),
	}
	if m.NextRetryDelay != nil {
		d := time.Duration(min(*m.NextRetryDelay, uint64(maxDelay/time.Millisecond))) * time.Millisecond
		f.NextRetryDelay = &d
	}
	if v >= V7 && m.Behavior > 0 && m.Behavior <= service.ErrorBehavior_FAIL {
		f.Behavior = Behavior(m.Behavior)
	}
	return f, nil
}

// ParseSuspension decodes the future that a suspended handler awaits. Before protocol 7 it is
// a flat set, completed by any of its elements. A tree nested too deeply is RT0025.
func ParseSuspension(v Version, payload []byte) (*journal.Future, error) {
	f, err := journal.ParseSuspension(payload, uint8(v))
	switch {
	case errors.Is(err, journal.ErrTooDeep):
		return nil, tooDeep(journal.MaxDepth)
	case err != nil:
		return nil, undecodable(Suspension, err)
	}
	return f, nil
}

// ParseAwaitingOn decodes the hint about what a running handler awaits (protocol 7). Its
// future is encoded like that of a suspension, but in another field.
func ParseAwaitingOn(payload []byte) (journal.Await, error) {
	body, err := bytesField(payload, 1)
	if err != nil {
		return journal.Await{}, undecodable(AwaitingOn, err)
	}
	f, err := journal.ParseFuture(body)
	switch {
	case errors.Is(err, journal.ErrTooDeep):
		return journal.Await{}, tooDeep(journal.MaxDepth)
	case err != nil:
		return journal.Await{}, undecodable(AwaitingOn, err)
	}
	return journal.Await{On: f, Executing: boolField(payload, 2)}, nil
}

// CheckDepth rejects futures nested deeper than limit; 0 means no limit.
func CheckDepth(f *journal.Future, limit int) error {
	if limit > 0 && f.Depth() > limit {
		return tooDeep(limit)
	}
	return nil
}

func tooDeep(limit int) error {
	return errcode.New(errcode.RT0025, "awaited futures are nested more than %d levels deep", limit)
}
