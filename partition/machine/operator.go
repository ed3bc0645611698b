package machine

import (
	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/journal"
)

// Signal sends a signal to an invocation: from outside, as a completed awakeable or a
// cancel, or from another invocation. It is also a message between partitions.
//
// The numbered signal journal.CancelSignal is a cancel: it ends an invocation that has not
// started, and resumes a paused one.
type Signal struct {
	Target ids.Invocation
	ID     journal.NotificationID
	Result *journal.Result // nil: void
	// Request is random for each signal from outside and unchanged by retries, so that a
	// cancel takes effect once; 0: none.
	Request uint64
}

// Kill ends an invocation immediately, and all calls that it waits for, even if other
// invocations wait for them too. It is also a message between partitions.
type Kill struct {
	Target ids.Invocation
	// Sink is, in messages, the waiter of the call that is to be killed: by now a later invocation
	// may have the ID. nil: kill in any case; always nil below feature level 4.
	Sink *Sink
}

// Attach requests the result of an invocation on behalf of another. It is only a message.
// The type of the sink says whether to wait for the result.
type Attach struct {
	Target ids.Invocation
	Sink   Sink
	// Legacy is the ID of the invocation if it was created before the derivation of IDs
	// changed, and Named is the target that it must then have; zero if the ID is the same.
	Legacy ids.Invocation
	Named  journal.Named
}

// Pause makes an invocation wait for an operator. An open attempt is asked to suspend, and
// what it still delivers is stored before the invocation pauses; below feature level 2 it
// is aborted, as if it had failed.
type Pause struct {
	Target ids.Invocation
	// Failure is that of its last attempt, which only the leader knows; nil: no attempt
	// failed.
	Failure *AttemptFailure
	// By is the network address of the client that requested the pause; from feature level
	// 3 on.
	By string
	// Reason is the operator's reason; from feature level 4 on.
	Reason string
	// Repin is the deployment on which the invocation is about to be resumed; empty: none. Such a
	// pause is not an event of the history; from feature level 4 on.
	Repin ids.Deployment
}

// Resume makes a paused or suspended invocation run again, and ends the backoff of one
// whose attempt failed.
type Resume struct {
	Target ids.Invocation
	// Repin changes the deployment; nil keeps it.
	Repin *Repin
}

// Repin is a deployment chosen by an operator, and the protocol versions that both it and
// the server speak.
type Repin struct {
	Deployment ids.Deployment
	Min, Max   uint8
}

// Purge deletes a completed invocation, or only its journal.
type Purge struct {
	Target  ids.Invocation
	Journal bool // only the journal
}

// Restart creates a new invocation from a completed one. Both have the same partition key.
type Restart struct {
	Target ids.Invocation
	New    ids.Invocation
	// From is the index of the last journal entry that is copied; 0 is the input alone.
	// Completions of copied commands are copied wherever they are.
	From uint32
	// Keep pins the new invocation to the deployment of the old one. Otherwise Repin does,
	// and if that is nil its first attempt chooses.
	Keep          bool
	Repin         *Repin
	ServerVersion string
}

// PauseQueue stops a vqueue from starting invocations, or resumes it; from feature level 4 on also
// a scope, that is all its vqueues, present and future. Running invocations are not affected.
type PauseQueue struct {
	ID ids.VQueue
	// Queue is the key of the vqueue, which the leader looks up by ID; zero: there is none. Without
	// a service it stands for its scope.
	Queue  flowcontrol.QueueKey
	Paused bool
	// By and Reason say who requested a pause, and why; from feature level 4 on.
	By, Reason string
}

// SetRules installs the rule book. Unless its version is newer than that of the current
// book, it changes nothing and the outcome is Existing.
type SetRules struct{ Book *flowcontrol.Book }

// Operation is a command that operators and other external clients may request. It
// concerns one invocation or one vqueue.
type Operation interface {
	Command
	operation()
}

func (*SetRules) command()   {}
func (*PauseQueue) command() {}

func (*Signal) command()  {}
func (*Kill) command()    {}
func (*Pause) command()   {}
func (*Resume) command()  {}
func (*Purge) command()   {}
func (*Restart) command() {}

func (*PauseQueue) operation() {}
func (*Signal) operation()     {}
func (*Kill) operation()       {}
func (*Pause) operation()      {}
func (*Resume) operation()     {}
func (*Purge) operation()      {}
func (*Restart) operation()    {}

func (*Signal) message() {}
func (*Kill) message()   {}
func (*Attach) message() {}
