package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"platform/test/harness"
)

// callGenerator generates the calls of one worker and checks their responses; its
// methods are not called concurrently.
type callGenerator interface {
	// next returns a request. The body stays valid until check returns.
	next() (path string, body []byte)
	// check returns an error if the response to the latest request is wrong.
	check(status int, answer []byte) error
}

func callPath(prefix string, parts ...string) string {
	return "/" + prefix + "/call/" + harness.Path(parts...)
}

func sendPath(prefix string, parts ...string) string {
	return "/" + prefix + "/send/" + harness.Path(parts...)
}

// messageSize is about the size of a small JSON document.
const messageSize = 32

// messages generates distinct JSON strings of equal length.
type messages struct {
	worker, i int
	body      []byte
}

func (m *messages) next() []byte {
	m.i++
	b := append(m.body[:0], '"')
	b = strconv.AppendInt(b, int64(m.worker), 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(m.i), 10)
	for len(b) < messageSize-1 {
		b = append(b, '.')
	}
	m.body = append(b, '"')
	return m.body
}

// echoCalls expects the response to be the request.
type echoCalls struct {
	path string
	messages
}

func newEcho(_ step, prefix string, worker int) callGenerator {
	return &echoCalls{path: callPath(prefix, "Bench", "echo"), messages: messages{worker: worker}}
}

func (c *echoCalls) next() (string, []byte) { return c.path, c.messages.next() }

func (c *echoCalls) check(status int, resp []byte) error {
	if status != http.StatusOK || !bytes.Equal(resp, c.body) {
		return fmt.Errorf("echo of %s: status %d, %.200q", c.body, status, resp)
	}
	return nil
}

// payloadCalls is echoCalls with large bodies that cannot be compressed. All calls of a
// worker have the same content except for a number: generating bodies would cost more than
// sending them.
type payloadCalls struct {
	echoCalls
	count uint64
}

func newPayload(s step, prefix string, worker int) callGenerator {
	c := &payloadCalls{echoCalls: echoCalls{path: callPath(prefix, "Bench", "payload")}}
	c.body = make([]byte, max(s.size, 8))
	random := rand.NewChaCha8([32]byte{byte(worker), byte(worker >> 8)})
	_, _ = random.Read(c.body) // cannot fail
	return c
}

func (c *payloadCalls) next() (string, []byte) {
	c.count++
	binary.BigEndian.PutUint64(c.body, c.count)
	return c.path, c.body
}

func (c *payloadCalls) check(status int, resp []byte) error {
	if status != http.StatusOK || !bytes.Equal(resp, c.body) {
		return fmt.Errorf("echo of %d bytes: status %d, %d bytes: %.200q", len(c.body), status, len(resp), resp)
	}
	return nil
}

// sumCalls calls a handler that returns 0 + 1 + … + size-1.
type sumCalls struct {
	path       string
	body, want []byte
}

func newSum(handler string) func(step, string, int) callGenerator {
	return func(s step, prefix string, _ int) callGenerator {
		return &sumCalls{
			path: callPath(prefix, "Bench", handler),
			body: strconv.AppendInt(nil, int64(s.size), 10),
			want: strconv.AppendInt(nil, int64(s.size*(s.size-1)/2), 10),
		}
	}
}

func (c *sumCalls) next() (string, []byte) { return c.path, c.body }

func (c *sumCalls) check(status int, resp []byte) error {
	if status != http.StatusOK || !bytes.Equal(resp, c.want) {
		return fmt.Errorf("%s with %s: status %d, %.200q; want %s", c.path, c.body, status, resp, c.want)
	}
	return nil
}

// counterCalls adds 1 to each key in turn. Handlers of a key run sequentially, so the
// responses that a worker gets for a key must increase.
type counterCalls struct {
	prefix, path string
	last         []int64 // latest response by key
	key          int
}

func counterKey(key int) string { return "key-" + strconv.Itoa(key) }

func newCounter(s step, prefix string, worker int) callGenerator {
	c := &counterCalls{prefix: prefix, last: make([]int64, s.size)}
	// Workers start at different keys to avoid lock-step access.
	c.key = worker * s.size / s.workers
	return c
}

var addOne = []byte("1")

func (c *counterCalls) next() (string, []byte) {
	c.key = (c.key + 1) % len(c.last)
	c.path = callPath(c.prefix, "Counter", counterKey(c.key), "add")
	return c.path, addOne
}

func (c *counterCalls) check(status int, resp []byte) error {
	value, err := strconv.ParseInt(string(resp), 10, 64)
	if status != http.StatusOK || err != nil {
		return fmt.Errorf("%s: status %d, %.200q", c.path, status, resp)
	}
	if value <= c.last[c.key] {
		return fmt.Errorf("%s: %d after %d", c.path, value, c.last[c.key])
	}
	c.last[c.key] = value
	return nil
}

// patchCalls change an option of a service, each time to another value.
type patchCalls struct {
	worker, i int
	body      []byte
}

func newPatch(_ step, _ string, worker int) callGenerator { return &patchCalls{worker: worker} }

func (c *patchCalls) next() (string, []byte) {
	c.i++
	c.body = fmt.Appendf(c.body[:0], `{"inactivity_timeout":"%dms"}`, 60_000+c.worker*1000+c.i%1000)
	return "/services/Counter", c.body
}

func (c *patchCalls) check(status int, resp []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("change of a service: status %d, %.200q", status, resp)
	}
	return nil
}

// replaceCalls replace the state of an object.
type replaceCalls struct{ patchCalls }

func newReplace(_ step, _ string, worker int) callGenerator {
	return &replaceCalls{patchCalls{worker: worker}}
}

func (c *replaceCalls) next() (string, []byte) {
	c.i++
	c.body = fmt.Appendf(c.body[:0], `{"object_key":"replaced-%d","new_state":{"n":"%d"}}`, c.worker, c.i)
	return "/services/Counter/state?wait=true", c.body
}

func (c *replaceCalls) check(status int, resp []byte) error {
	if status != http.StatusAccepted || !bytes.Contains(resp, []byte(`"applied"`)) {
		return fmt.Errorf("replacement of state: status %d, %.200q", status, resp)
	}
	return nil
}

// sendCalls sends to echo.
type sendCalls struct{ echoCalls }

func newSend(_ step, prefix string, worker int) callGenerator {
	return &sendCalls{echoCalls{path: sendPath(prefix, "Bench", "echo"), messages: messages{worker: worker}}}
}

func (c *sendCalls) check(status int, resp []byte) error { return checkAccepted(status, resp) }

func newDelayedSend(_ step, prefix string, worker int) callGenerator {
	return &sendCalls{echoCalls{path: sendPath(prefix, "Bench", "echo") + "?delay=1d", messages: messages{worker: worker}}}
}

// limitedScope is the scope that has a concurrency limit, and holdTime how long a handler
// holds one of its slots.
const (
	limitedScope = "limited"
	holdTime     = 20 * time.Millisecond
)

// limitCalls calls a handler in a scope with a concurrency limit.
type limitCalls struct {
	path string
	body []byte
}

func newLimit(_ step, prefix string, _ int) callGenerator {
	return &limitCalls{
		path: "/" + prefix + "/scope/" + limitedScope + "/call/" + harness.Path("Bench", "hold"),
		body: strconv.AppendInt(nil, holdTime.Milliseconds(), 10),
	}
}

func (c *limitCalls) next() (string, []byte) { return c.path, c.body }

func (c *limitCalls) check(status int, resp []byte) error {
	if status != http.StatusOK || !bytes.Equal(resp, c.body) {
		return fmt.Errorf("hold: status %d, %.200q", status, resp)
	}
	return nil
}

// sleepTime is how long handlers sleep durably.
const sleepTime = "1000" // ms, as JSON

// sleepCalls sends to a handler that sleeps.
type sleepCalls struct{ path string }

func newSleep(_ step, prefix string, _ int) callGenerator {
	return &sleepCalls{path: sendPath(prefix, "Bench", "sleep")}
}

func (c *sleepCalls) next() (string, []byte) { return c.path, []byte(sleepTime) }

func (c *sleepCalls) check(status int, resp []byte) error { return checkAccepted(status, resp) }

// wakeupWindow is the time within which all timers fire, minSendRate the assumed rate of
// sends per second.
const (
	wakeupWindow = 10 * time.Second
	minSendRate  = 1000
)

// timerCalls sends to a handler that sleeps, so that all timers fire within wakeupWindow,
// which starts when all sends have been accepted.
type timerCalls struct {
	path        string
	firstWakeup time.Time // of the first timer
	rand        *rand.Rand
	body        []byte
}

func newTimers(s step, prefix string, worker int) callGenerator {
	return &timerCalls{
		path: sendPath(prefix, "Bench", "sleep"), firstWakeup: time.Now().Add(setupTime(s.size)),
		rand: rand.New(rand.NewPCG(1, uint64(worker))),
	}
}

// setupTime is the time to accept all sends.
func setupTime(size int) time.Duration {
	return time.Duration(size)*time.Second/minSendRate + 5*time.Second
}

func (c *timerCalls) next() (string, []byte) {
	d := time.Until(c.firstWakeup) + time.Duration(c.rand.Int64N(int64(wakeupWindow)))
	c.body = strconv.AppendInt(c.body[:0], d.Milliseconds(), 10)
	return c.path, c.body
}

func (c *timerCalls) check(status int, resp []byte) error { return checkAccepted(status, resp) }

var errNotAccepted = errors.New("a send was not accepted")

// checkAccepted checks the response to a new send. It does not decode the JSON, which
// would cost more than the request.
func checkAccepted(status int, resp []byte) error {
	if status != http.StatusAccepted || !bytes.Contains(resp, []byte(`"inv_1`)) || !bytes.Contains(resp, []byte(`"Accepted"`)) {
		return fmt.Errorf("%w: status %d, %.200q", errNotAccepted, status, resp)
	}
	return nil
}
