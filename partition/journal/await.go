package journal

// Await is what a running handler reports to be waiting for (protocol 7).
type Await struct {
	On        *Future
	Executing bool // side effects are being executed meanwhile
}

// Combinator says how the children of a Future make it done (protocol 7).
type Combinator uint8

// The combinators; their numbers are those of the protocol.
const (
	CombineUnknown                   Combinator = 0
	CombineFirstCompleted            Combinator = 1
	CombineAllCompleted              Combinator = 2
	CombineFirstSucceededOrAllFailed Combinator = 3
	CombineAllSucceededOrFirstFailed Combinator = 4
)

// Future is what a suspended handler waits for: a tree whose leaves are
// notifications. Protocol 5 and 6 know flat sets only, which are
// CombineFirstCompleted.
type Future struct {
	Completions []uint32
	Signals     []uint32
	Names       []string
	Nested      []Future
	Combinator  Combinator
}

// Empty reports whether the tree has no leaf at all.
func (f *Future) Empty() bool {
	for i := range f.Nested {
		if !f.Nested[i].Empty() {
			return false
		}
	}
	return len(f.Completions)+len(f.Signals)+len(f.Names) == 0
}

// Settled is how a notification stands.
type Settled uint8

// Pending is the zero value: the notification is not there yet. Either is done
// with an outcome that cannot be known.
const (
	Pending Settled = iota
	Succeeded
	Failed
	Either
)
