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
	errNoFuture     = errors.New("it does not say what is awaited")
)

// undecodable is the error of a payload that is not what its type promises.
func undecodable(t Type, err error) error {
	return errcode.New(errcode.RT0012, "message %s cannot be understood: %w", Name(t), err)
}

// ParseRunProposal reads the result of a side effect that an endpoint wants
// recorded: the completion id, and the payload of the RunCompletion to record.
func ParseRunProposal(payload []byte) (completion uint32, notification []byte, err error) {
	completion, notification, err = journal.RunCompletionOf(payload)
	if err == nil && completion == 0 {
		err = errNoCompletion
	}
	if err != nil {
		return 0, nil, undecodable(ProposeRunCompletion, err)
	}
	return completion, notification, nil
}

// Behavior is what an Error message asks for (protocol 7).
type Behavior uint8

// The behaviours.
const (
	Retry Behavior = iota
	Pause
	Fail
)

// Failure is what an Error message says.
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

// longestDelay keeps a delay that an endpoint asks for within what a clock can add.
const longestDelay = 100 * 365 * 24 * time.Hour

// ParseError reads an Error message.
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
		d := time.Duration(min(*m.NextRetryDelay, uint64(longestDelay/time.Millisecond))) * time.Millisecond
		f.NextRetryDelay = &d
	}
	if v >= V7 && m.Behavior > 0 && m.Behavior <= service.ErrorBehavior_FAIL {
		f.Behavior = Behavior(m.Behavior)
	}
	return f, nil
}

// ParseSuspension reads what a suspended handler waits for. Before protocol 7 that
// is a flat set of which any one is enough. A tree nested too deeply is RT0025.
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

// ParseAwaitingOn reads the hint about what a running handler waits for (protocol
// 7), whose future is laid out like that of a suspension but in another field.
func ParseAwaitingOn(payload []byte) (journal.Await, error) {
	body, err := lengthDelimited(payload, 1)
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
	return journal.Await{On: f, Executing: truthOf(payload, 2)}, nil
}

// CheckDepth refuses futures that are nested deeper than configured.
func CheckDepth(f *journal.Future, most int) error {
	if most > 0 && f.Depth() > most {
		return tooDeep(most)
	}
	return nil
}

func tooDeep(most int) error {
	return errcode.New(errcode.RT0025, "awaited futures are nested more than %d levels deep", most)
}
