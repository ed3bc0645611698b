package machine

import (
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
)

// Header is what a log entry says about all its commands.
type Header struct {
	Epoch uint64 // leader epoch of the proposer; older ones are refused
	Time  int64  // proposer's clock, milliseconds since 1970; partition time is the largest seen
	// Level is the feature level that the entry was written at. Read Machine.level
	// instead, which never falls.
	Level feature.Level
	// Command is the place of the command within its log entry. It is not part of the
	// entry: whoever applies it counts.
	Command int
}

// Command is a log command: one of the types below.
type Command interface{ command() }

// Lead announces a new leader epoch. Entries of older epochs are refused from
// here on. It is refused itself unless its epoch is newer than the known one.
type Lead struct {
	Epoch uint64
	Node  string
	// Flow says that flow control is enabled, which the leader found to be possible.
	Flow bool
}

// Invoke creates an invocation, or finds the one that already has its id. It is
// also a message between partitions, then with a Sink for calls.
type Invoke struct {
	ID             ids.Invocation
	Request        uint64 // made up for each request and kept when it is repeated; 0: none
	Target         Target
	Input          []byte // payload of the Input entry
	Source         Source
	Sink           *Sink // where the result goes; nil for ingress and sends
	IdempotencyKey *string
	LimitKey       string
	Trace          Trace
	StartAt        int64 // 0: now
	// Delay is how long after it is proposed it starts, in milliseconds; 0: StartAt
	// says it. Whoever leads makes StartAt of it before it gets into the log, so that the
	// time of no other machine matters.
	Delay         int64
	Retention     Retention
	ServerVersion string
	Priority      uint8 // 0 to flowcontrol.Priorities-1; only one with a scope has use for it
}

// Progress is what an attempt achieved, in order. All steps are refused when the
// attempt is not the invocation's current one.
type Progress struct {
	ID      ids.Invocation
	Attempt uint64
	Pin     Pin
	Steps   []Step
	Errors  uint32 // attempts that have failed since the progress before, as far as is known
}

// StepKind says which fields of a Step are used.
type StepKind uint8

// The kinds of steps.
const (
	StepCommand       StepKind = iota // Type, Payload, Callee for calls: append a journal command
	StepRunCompletion                 // Payload: append the RunCompletion notification, unless one is there
	StepSuspend                       // Await: suspend until it is over
	StepEnd                           // end with the last Output
	StepPause                         // Failure: wait for an operator
	StepFail                          // Failure: end with this failure
	StepYield                         // Failure, if any: pause as an operator has asked, or begin anew if that was taken back
)

// Step is one achievement of an attempt.
type Step struct {
	Kind    StepKind
	Type    journal.Type
	Payload []byte
	// Completion is the completion id a StepRunCompletion answers.
	Completion uint32
	// Callee is what the registry said about the target of a Call or OneWayCall.
	Callee  *Callee
	Await   *journal.Future
	Failure *AttemptFailure
	// Unretryable says that a StepPause follows from the failure alone, whatever attempts
	// the retry policy still allows; from feature level 3 on.
	Unretryable bool
}

// Callee is the resolved target of a call: what Invoke needs beyond the payload of
// the call command.
type Callee struct {
	ID        ids.Invocation
	Type      TargetType
	Retention Retention
}

// FireTimers says that timers are due. Each is ignored unless it is registered and
// due by partition time.
type FireTimers struct{ Timers []Timer }

// TimerKind says what a timer does.
type TimerKind uint8

// The kinds of timers.
const (
	TimerSleep        TimerKind = iota // completes the Sleep with the timer's completion id
	TimerStart                         // starts a scheduled invocation
	TimerPurge                         // forgets a completed invocation
	TimerPurgeJournal                  // forgets the journal of a completed invocation
	TimerQueue                         // looks at the counter with the timer's name again; ID is zero
	TimerAnswer                        // gives answers that are owed for a completed invocation
	TimerPromise                       // gives answers that are owed for the promise with the timer's name; ID is zero
)

// Timer is a registered timer; all its fields are its key.
type Timer struct {
	At         int64
	Kind       TimerKind
	ID         ids.Invocation
	Completion uint32
	Name       string // of a counter, see flowcontrol.CounterKey, or a promise; empty for the other kinds
}

// Deliver hands over messages of another partition's outbox, in order. A message
// with a sequence number not above the last delivered one is dropped.
type Deliver struct {
	From     uint32 // sending partition
	FirstSeq uint64 // sequence number of the first message; the rest follow
	Messages []Message
}

// Acknowledge says that a partition has all our messages up to a sequence number.
type Acknowledge struct {
	To   uint32
	Upto uint64
}

// Message travels between partitions: *Invoke, *Complete, *Signal, *Kill or *Attach.
type Message interface{ message() }

// Complete answers a call, attach or look at the output of an invocation.
type Complete struct {
	Sink   Sink
	Result journal.Result
	Void   bool // instead of Result: there is none yet
}

func (*Lead) command()        {}
func (*Invoke) command()      {}
func (*Progress) command()    {}
func (*FireTimers) command()  {}
func (*Deliver) command()     {}
func (*Acknowledge) command() {}

func (*Invoke) message()   {}
func (*Complete) message() {}
