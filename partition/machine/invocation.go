package machine

import (
	"time"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
)

// Target is the handler that an invocation calls.
type Target struct {
	Scope   string // empty: unscoped
	Service string
	Key     string // empty for plain services
	Handler string
	Type    target.Type
}

// String returns the form that users see: "Service/handler" or "Service/key/handler".
func (t Target) String() string {
	if t.Type.Keyed() {
		return t.Service + "/" + t.Key + "/" + t.Handler
	}
	return t.Service + "/" + t.Handler
}

// Object returns the owner of the state and of the lock.
func (t Target) Object() Object { return Object{t.Scope, t.Service, t.Key} }

// Object identifies one object or workflow: the owner of a lock, of state and of
// promises.
type Object struct{ Scope, Service, Key string }

// Status is the state of an invocation in its lifecycle. Backing off and running are one
// status, since attempts are tracked by the leader and not stored.
type Status uint8

// The statuses, in the order of an invocation's life.
const (
	Scheduled Status = iota + 1 // waits for its start time
	Inboxed                     // waits for its key or for a slot of its scope, for the first time or to continue
	Invoked                     // admitted; an attempt runs or is due
	Suspended                   // waits for a notification, without an attempt
	Paused                      // waits for an operator
	Completed                   // has a result, kept for its retention
)

// SourceKind is the kind of origin of an invocation.
type SourceKind uint8

// The sources of invocations.
const (
	FromIngress SourceKind = iota
	FromService
	FromSubscription
	FromRestart
)

// Source is what created an invocation. Caller and CallerTarget are set for FromService;
// Caller alone, the restarted invocation, for FromRestart.
type Source struct {
	Kind         SourceKind
	Caller       ids.Invocation
	CallerTarget string
	Subscription string
}

// Sink is an invocation that receives a result as a notification.
type Sink struct {
	Caller     ids.Invocation
	Life       uint64 // of the caller; a result for an earlier one is dropped
	Completion uint32
	Type       journal.Type // CallCompletion or AttachInvocationCompletion
}

// Pin is the deployment and protocol version that an invocation keeps from its first stored
// progress on. The zero Pin pins nothing.
type Pin struct {
	Deployment ids.Deployment
	Protocol   uint8
}

// Retention is how long after its end an invocation's result and journal are kept, in
// milliseconds; 0 means as short as the machine allows (see MinRetention).
type Retention struct{ Completion, Journal int64 }

// RetentionOf converts durations, truncated to milliseconds.
func RetentionOf(completion, journal time.Duration) Retention {
	return Retention{Completion: completion.Milliseconds(), Journal: journal.Milliseconds()}
}

// Invocation is the record of one invocation. Times are partition time in milliseconds
// since 1970, 0 if it has not happened.
type Invocation struct {
	ID      ids.Invocation
	Request uint64 // of the Invoke that created it
	// Life distinguishes an invocation from an earlier one with the same ID, which was
	// purged: it is the partition's last attempt number when the record was created.
	Life           uint64
	Target         Target
	Status         Status
	Source         Source
	IdempotencyKey *string // nil: none was given
	LimitKey       string
	Trace          Trace
	Retention      Retention
	RestartedFrom  ids.Invocation
	ServerVersion  string // version of the server that accepted it

	CreatedAt, ModifiedAt, ScheduledAt, InboxedAt, RunningAt, CompletedAt int64
	StartAt                                                               int64 // planned start of a delayed one
	ProgressAt                                                            int64 // last change of the journal

	// Attempt fences attempts: it grows, within the partition, each time an invocation is
	// admitted to run. Progress of another attempt is refused.
	Attempt uint64
	// Failed counts the failed attempts as last reported, from which a new leader continues; zero
	// below feature level 4.
	Failed   FailedAttempts
	Pin      Pin
	Length   uint32 // journal entries
	Commands uint32 // journal entries that are commands
	Output   uint32 // journal index of the last Output command; 0: none yet
	Sleeps   uint32 // registered timers of Sleep commands that have not fired
	Await    *journal.Future
	// AwaitReduced means that everything in Await is pending, except cancels and named signals;
	// false below feature level 4.
	AwaitReduced bool
	// Signalled means that the journal contains a repeatable signal. Seen is the length of
	// the journal when the invocation was last admitted. See suspend.go.
	Signalled bool
	Seen      uint32
	// SignalBytes is the size of the signals in the journal, of which each counts at least
	// MinSignalBytes; 0 below feature level 4.
	SignalBytes uint64
	// ResultInJournal means that the tables have the value of Result only in the journal, as entry Output;
	// false below feature level 4.
	ResultInJournal bool
	// QueueSeq is its sequence number in the queue for the key or, once it has the key or
	// needs none, in the lane of its priority in its vqueue, while Inboxed.
	QueueSeq  uint64
	HoldsLock bool
	// Pausing means that it pauses as soon as the open attempt ends without a result, while
	// Invoked.
	Pausing bool
	// LastPause is its last pause; nil below feature level 3 and if there was none. It is
	// never modified in place.
	LastPause *PauseRecord
	// CancelRequestedAt is when its cancellation was last requested after it had started;
	// its handler decides about it. 0 below feature level 3.
	CancelRequestedAt int64
	// History describes its stored events; zero below feature level 4.
	History History
	// Causes are those of its failed attempts, the one that occurred last at the end; nil
	// below feature level 4. They are kept until the record is deleted, and never modified in
	// place.
	Causes    []Cause
	Sinks     []Sink          // waiters for the result; once Completed, the unanswered ones
	Requests  []uint64        // of the last repeatable signals
	Result    *journal.Result // once Completed
	Killed    bool            // ended by kill, or by cancel before it started
	Seed      uint64          // of the handler's random numbers; 0: derived from the ID
	Failure   *AttemptFailure // of its last attempt, while Paused; nil if none failed
	ExpiresAt int64           // when the record is purged, once Completed
	Priority  uint8           // among invocations that wait for the same slots, 0 to flowcontrol.Priorities-1
	Flow      *Flow           // nil without a scope; never modified in place
}

// FailedAttempts counts the failed attempts of an invocation since it was last admitted.
type FailedAttempts struct {
	Total        uint32
	Counted      uint32 // by the retry policy, which resumes and cancels begin again
	SinceCommand uint32 // those that reached the endpoint, since the last journal command
}

// Waiting reports whether the invocation waits to run for the first time.
func (inv *Invocation) Waiting() bool {
	return inv.Status == Scheduled || inv.Status == Inboxed && inv.RunningAt == 0
}

// Stopped reports whether a completed invocation failed because it was killed or cancelled: after its
// cancellation was requested, failures with code 409 count as such.
func (inv *Invocation) Stopped() bool {
	f := inv.Result.Failure
	return f != nil && (inv.Killed || inv.CancelRequestedAt != 0 && f.Code == canceled.Failure.Code)
}

// WaitsForKey reports whether the invocation is in the queue for its key.
func (inv *Invocation) WaitsForKey() bool {
	return inv.Status == Inboxed && inv.Target.Type.Exclusive() && !inv.HoldsLock
}

// Trace is the caller's W3C trace context and baggage, which callees inherit.
type Trace struct{ Parent, State, Baggage string }

// AttemptFailure is why an attempt failed; that of the last attempt is kept in a paused
// invocation.
type AttemptFailure struct {
	Code           uint32
	ErrorCode      string // catalogue code, such as RT0007
	Message        string
	Stacktrace     string
	RelatedIndex   *uint32 // index among commands
	RelatedName    string
	RelatedCommand journal.Type // 0: none
}
