package machine

import (
	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/journal"
)

// Signal hands a signal to an invocation: from outside, as a completed awakeable or
// a cancel, or from another invocation. It is also a message between partitions.
//
// The numbered signal journal.CancelSignal is a cancel: it ends an invocation that
// has not started, and resumes a paused one.
type Signal struct {
	Target ids.Invocation
	ID     journal.NotificationID
	Result *journal.Result // nil: void
	// Request is made up for each signal from outside and kept when it is repeated,
	// so that a cancel is not taken twice; 0: none.
	Request uint64
}

// Kill ends an invocation at once, and all that it has called and waits for, others
// that wait for the same included. It is also a message between partitions.
type Kill struct{ Target ids.Invocation }

// Attach asks for the result of an invocation, on behalf of another. It is a message
// only. The type of the sink tells whether to wait for the result.
type Attach struct {
	Target ids.Invocation
	Sink   Sink
	// Legacy is the id that the invocation has if it was made before the derivation of
	// ids changed, and Named what must be its target then; zero if that is the same id.
	Legacy ids.Invocation
	Named  journal.Named
}

// Pause lets an invocation wait for an operator. An open attempt is asked to suspend, and
// what it still delivers is stored before the invocation pauses; below feature level 2 it
// is cut, as if it had failed.
type Pause struct {
	Target ids.Invocation
	// Failure is that of its last attempt, which only the leader knows; nil: none
	// failed.
	Failure *AttemptFailure
	// By says who asks for it, for people; from feature level 3 on.
	By string
}

// Resume lets a paused or suspended invocation run again, and ends the back-off of
// one whose attempt failed.
type Resume struct {
	Target ids.Invocation
	// Repin changes the deployment; nil keeps it.
	Repin *Repin
}

// Repin is a deployment chosen by an operator, and the protocol versions that both
// it and the server speak.
type Repin struct {
	Deployment ids.Deployment
	Min, Max   uint8
}

// Purge forgets a completed invocation, or only its journal.
type Purge struct {
	Target  ids.Invocation
	Journal bool // only the journal
}

// Restart makes a new invocation from a completed one. Both have the same
// partition key.
type Restart struct {
	Target ids.Invocation
	New    ids.Invocation
	// From is the index of the last journal entry that is copied; 0 is the input
	// alone. Answers to copied commands are copied wherever they are.
	From uint32
	// Keep pins the new invocation to the deployment of the old one. Otherwise Repin
	// does, and if that is nil its first attempt chooses.
	Keep          bool
	Repin         *Repin
	ServerVersion string
}

// PauseQueue stops a vqueue from starting invocations, or lets it go on. Those that
// run, run on.
type PauseQueue struct {
	ID ids.VQueue
	// Queue is the queue with the id, which the leader looks up; zero: there is none.
	Queue  flowcontrol.QueueKey
	Paused bool
}

// SetRules gives the partition the rule book. Unless its version is newer than that of
// the book that the partition has, it changes nothing and the outcome is Existing.
type SetRules struct{ Book *flowcontrol.Book }

func (*SetRules) command()   {}
func (*PauseQueue) command() {}

func (*Signal) command()  {}
func (*Kill) command()    {}
func (*Pause) command()   {}
func (*Resume) command()  {}
func (*Purge) command()   {}
func (*Restart) command() {}

func (*Signal) message() {}
func (*Kill) message()   {}
func (*Attach) message() {}
