package contract

// Outcome is the result of something awaited: a value, or the terminal error in Code and
// Message. Combinators set Index and Of.
type Outcome struct {
	Value   string    `json:"value,omitempty"`
	Code    int       `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	Index   int       `json:"index,omitempty"` // which of several it was
	Of      []Outcome `json:"of,omitempty"`    // what the parts came to
}

// Await asks Awakeables/await for N awakeables.
type Await struct {
	ID string `json:"id"` // name of the record of their ids
	N  int    `json:"n"`
}

// Completion resolves an awakeable or a promise, or rejects it.
type Completion struct {
	Awakeable string `json:"awakeable,omitempty"` // for Awakeables/complete
	Promise   string `json:"promise,omitempty"`   // for Flow/complete
	Value     string `json:"value,omitempty"`
	Reject    string `json:"reject,omitempty"` // not empty: reject with this message
}

// Delegate asks Awakeables/delegate to hand an awakeable to a holder.
type Delegate struct {
	Holder string `json:"holder"` // service name
	Key    string `json:"key"`
}

// Flow is the input of Flow/run.
type Flow struct {
	ID       string   `json:"id"`       // name of the record of runs
	Promises []string `json:"promises"` // to wait for, one after the other
	Text     string   `json:"text"`     // kept as the state "text"
}

// Wait asks Signals/await for signals, one after the other.
type Wait struct {
	ID    string   `json:"id"` // name of the record of the invocation id; empty: it is not recorded
	Names []string `json:"names"`
}

// Signal is sent by Signals/send.
type Signal struct {
	Invocation string `json:"invocation"`
	Name       string `json:"name"`
	Value      string `json:"value,omitempty"`
	Reject     string `json:"reject,omitempty"` // not empty: reject with this message
}

// Block asks Cancel/block to wait until it is cancelled.
type Block struct {
	ID    string `json:"id"`              // record "blocked" per attempt, ID-undone the error's code
	In    string `json:"in"`              // sleep, awakeable, call, attach, send, combined, run
	Child string `json:"child,omitempty"` // key to call or send to
	Catch bool   `json:"catch,omitempty"` // return the error instead of failing with it
}

// Tree asks Tree/grow for a tree of invocations whose leaves wait indefinitely.
type Tree struct {
	ID    string `json:"id"` // record the key of each node per attempt; ID-ended those that saw an error
	Depth int    `json:"depth"`
	Width int    `json:"width"`
	Send  bool   `json:"send,omitempty"` // children are sent to, not called
}

// Drift asks Drift/run to behave differently on some of its attempts.
type Drift struct {
	ID     string `json:"id"`     // record one entry for each attempt
	First  string `json:"first"`  // sleep, run, other, set, get, call
	Second string `json:"second"` // what is done instead from the second attempt on
	Heal   int    `json:"heal"`   // from this attempt on, do First again and end
}

// Say is what Utils/say does before it answers.
type Say struct {
	Value   string `json:"value"`
	ID      string `json:"id,omitempty"`     // record of the step, none if empty
	Gate    string `json:"gate,omitempty"`   // waited for inside the step
	Millis  int    `json:"millis,omitempty"` // slept before the step
	Code    int    `json:"code,omitempty"`   // not 0: end with this terminal error
	Message string `json:"message,omitempty"`
}

// Versions is what Versioned/work saw of the environment variable VERSION.
type Versions struct {
	Before string `json:"before"` // in a step before the awakeable
	After  string `json:"after"`  // after it, outside of any step
}

// Program is what Interpreter/run carries out, command by command.
type Program struct {
	ID       string    `json:"id"` // prefix of the records of awakeable ids
	Commands []Command `json:"commands"`
}

// Command is one command of a Program; Do says which, README.md what each reads.
type Command struct {
	Do      string    `json:"do"`
	Name    string    `json:"name,omitempty"`
	Value   string    `json:"value,omitempty"`
	Millis  int       `json:"millis,omitempty"`
	Code    int       `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	Call    *Call     `json:"call,omitempty"`
	Of      []Command `json:"of,omitempty"`
}
