// Package contract has the payloads of the test services. The services of each language
// expose the same handlers, with names prefixed by the language (GoEcho, TsEcho), so that
// each case runs for all of them. README.md specifies every service and handler for
// implementations in other languages.
package contract

import "encoding/json"

// Message is what Echo/json returns unchanged.
type Message struct {
	Text   string            `json:"text"`
	Number int64             `json:"number"`
	Tags   map[string]string `json:"tags"`
}

// Step is the input of the handlers of Steps; each reads what it needs.
type Step struct {
	ID      string `json:"id"`                // name of the record of side effects
	N       int    `json:"n,omitempty"`       // how many steps
	Fail    int    `json:"fail,omitempty"`    // how many attempts fail before one succeeds
	Code    int    `json:"code,omitempty"`    // of a terminal error
	Message string `json:"message,omitempty"` // of a terminal error
	Millis  int    `json:"millis,omitempty"`  // to sleep
	Gate    string `json:"gate,omitempty"`    // to wait for inside a step

	Metadata map[string]string `json:"metadata,omitempty"` // of a terminal error
}

// Failure is a terminal error that a handler caught.
type Failure struct {
	Code     int               `json:"code"`
	Message  string            `json:"message"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// UnmarshalJSON reads no metadata and empty metadata as the same: languages differ
// in which they write.
func (f *Failure) UnmarshalJSON(raw []byte) error {
	type plain Failure
	if err := json.Unmarshal(raw, (*plain)(f)); err != nil {
		return err
	}
	if len(f.Metadata) == 0 {
		f.Metadata = nil
	}
	return nil
}

// Random is what one attempt drew from the deterministic source.
type Random struct {
	Number float64 `json:"number"`
	UUID   string  `json:"uuid"`
}

// Call describes an invocation that Caller makes on behalf of the test.
type Call struct {
	Service        string          `json:"service"`
	Key            string          `json:"key,omitempty"`
	Handler        string          `json:"handler"`
	Input          json.RawMessage `json:"input,omitempty"`
	DelayMillis    int             `json:"delayMillis,omitempty"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty"`

	Headers map[string]string `json:"headers,omitempty"`
}

// Race asks for the first of several sleeps, in milliseconds.
type Race struct {
	Millis []int `json:"millis"`
}

// Timeout asks for a call that is given up after some time.
type Timeout struct {
	Call   Call `json:"call"`
	Millis int  `json:"millis"`
}

// Op is one state operation of Store/script: set, setBytes, get, getBytes, clear,
// clearAll, keys, sleep (which forces a replay when everything suspends), retry
// (fails Value attempts, counted under the record Key) or fail (ends with a
// terminal error, code 422, message Value).
type Op struct {
	Op    string `json:"op"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// OpResult is the answer to get (Present, Value) and keys (Keys, sorted).
type OpResult struct {
	Present bool     `json:"present"`
	Value   string   `json:"value,omitempty"`
	Keys    []string `json:"keys,omitempty"`
}
