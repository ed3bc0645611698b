// Package target defines the types of handlers, which the registry, the state machine
// and the invoker share.
package target

// Type is the type of a handler. It determines locking, access to state and promises.
// The numbers are stored.
type Type uint8

// The handler types.
const (
	Service         Type = iota // plain service: no key
	ObjectExclusive             // one at a time per key, may write state
	ObjectShared                // any number at a time, reads state
	WorkflowRun                 // once per key
	WorkflowShared              // any number at a time beside the run
	StateUpdate                 // no handler: an operator's change of an object's state
)

// Keyed reports whether targets of this type have a key.
func (t Type) Keyed() bool { return t != Service }

// Exclusive reports whether a target of this type runs alone under its key. For the run
// of a workflow that only excludes changes of its state by operators.
func (t Type) Exclusive() bool {
	return t == ObjectExclusive || t == WorkflowRun || t == StateUpdate
}

// WritesState reports whether handlers of this type may change state.
func (t Type) WritesState() bool { return t == ObjectExclusive || t == WorkflowRun }

// Workflow reports whether the target belongs to a workflow.
func (t Type) Workflow() bool { return t == WorkflowRun || t == WorkflowShared }
