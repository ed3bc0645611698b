package journal

// Await is what a running handler reports to be waiting for (protocol 7).
type Await struct {
	On        *Future
	Executing bool // side effects are in progress meanwhile
}

// Combinator defines how the results of its children settle a Future (protocol 7).
type Combinator uint8

// The combinators, with the numbers of the protocol.
const (
	CombineUnknown                   Combinator = 0
	CombineFirstCompleted            Combinator = 1
	CombineAllCompleted              Combinator = 2
	CombineFirstSucceededOrAllFailed Combinator = 3
	CombineAllSucceededOrFirstFailed Combinator = 4
)

// Future is what a suspended handler waits for: a tree whose leaves are notifications.
// Protocols 5 and 6 have only flat sets, which are CombineFirstCompleted.
type Future struct {
	Completions []uint32
	Signals     []uint32
	Names       []string
	Nested      []Future
	Combinator  Combinator
}

// Empty reports whether the tree has no leaves.
func (f *Future) Empty() bool {
	for i := range f.Nested {
		if !f.Nested[i].Empty() {
			return false
		}
	}
	return len(f.Completions)+len(f.Signals)+len(f.Names) == 0
}

// Settled is the state of a notification.
type Settled uint8

// Pending is the zero value: the notification has not arrived. Either means settled with an
// unknown outcome.
const (
	Pending Settled = iota
	Succeeded
	Failed
	Either
)
