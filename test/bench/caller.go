package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"platform/test/harness"
)

// caller is what one worker asks and how it judges the answers; its methods are
// called in turn.
type caller interface {
	// next returns a request. The body is not changed before check returns.
	next() (path string, body []byte)
	// check returns an error if the answer to the latest request is wrong.
	check(status int, answer []byte) error
}

func callPath(prefix string, parts ...string) string {
	return "/" + prefix + "/call/" + harness.Path(parts...)
}

func sendPath(prefix string, parts ...string) string {
	return "/" + prefix + "/send/" + harness.Path(parts...)
}

// messageSize is about as much as a small JSON document; what the sizes of
// payloads cost is not what is compared here.
const messageSize = 32

// messages are JSON strings of one length, no two of which are equal.
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

// echoCaller wants back what it sent.
type echoCaller struct {
	path string
	messages
}

func newEcho(_ step, prefix string, worker int) caller {
	return &echoCaller{path: callPath(prefix, "Bench", "echo"), messages: messages{worker: worker}}
}

func (c *echoCaller) next() (string, []byte) { return c.path, c.messages.next() }

func (c *echoCaller) check(status int, answer []byte) error {
	if status != http.StatusOK || !bytes.Equal(answer, c.body) {
		return fmt.Errorf("echo of %s: status %d, %.200q", c.body, status, answer)
	}
	return nil
}

// sumCaller asks a handler for 0 + 1 + … + size-1.
type sumCaller struct {
	path       string
	body, want []byte
}

func newSum(handler string) func(step, string, int) caller {
	return func(s step, prefix string, _ int) caller {
		return &sumCaller{
			path: callPath(prefix, "Bench", handler),
			body: strconv.AppendInt(nil, int64(s.size), 10),
			want: strconv.AppendInt(nil, int64(s.size*(s.size-1)/2), 10),
		}
	}
}

func (c *sumCaller) next() (string, []byte) { return c.path, c.body }

func (c *sumCaller) check(status int, answer []byte) error {
	if status != http.StatusOK || !bytes.Equal(answer, c.want) {
		return fmt.Errorf("%s with %s: status %d, %.200q; want %s", c.path, c.body, status, answer, c.want)
	}
	return nil
}

// counterCaller adds 1 to one key after the other. Handlers of a key run one
// after the other, so what a worker gets for a key can only grow.
type counterCaller struct {
	paths []string
	last  []int64 // the latest answer for each key
	key   int
}

func counterKey(key int) string { return "key-" + strconv.Itoa(key) }

func newCounter(s step, prefix string, worker int) caller {
	c := &counterCaller{paths: make([]string, s.size), last: make([]int64, s.size)}
	for key := range c.paths {
		c.paths[key] = callPath(prefix, "Counter", counterKey(key), "add")
	}
	// Workers start at different keys, so that they do not follow each other.
	c.key = worker * s.size / s.workers
	return c
}

var addOne = []byte("1")

func (c *counterCaller) next() (string, []byte) {
	c.key = (c.key + 1) % len(c.paths)
	return c.paths[c.key], addOne
}

func (c *counterCaller) check(status int, answer []byte) error {
	value, err := strconv.ParseInt(string(answer), 10, 64)
	if status != http.StatusOK || err != nil {
		return fmt.Errorf("%s: status %d, %.200q", c.paths[c.key], status, answer)
	}
	if value <= c.last[c.key] {
		return fmt.Errorf("%s: %d after %d", c.paths[c.key], value, c.last[c.key])
	}
	c.last[c.key] = value
	return nil
}

// sendCaller sends to echo.
type sendCaller struct{ echoCaller }

func newSend(_ step, prefix string, worker int) caller {
	return &sendCaller{echoCaller{path: sendPath(prefix, "Bench", "echo"), messages: messages{worker: worker}}}
}

func (c *sendCaller) check(status int, answer []byte) error { return checkSent(status, answer) }

// sleepTime is how long handlers sleep durably.
const sleepTime = "1000" // ms, as JSON

// sleepCaller sends to a handler that sleeps.
type sleepCaller struct{ path string }

func newSleep(_ step, prefix string, _ int) caller {
	return &sleepCaller{path: sendPath(prefix, "Bench", "sleep")}
}

func (c *sleepCaller) next() (string, []byte) { return c.path, []byte(sleepTime) }

func (c *sleepCaller) check(status int, answer []byte) error { return checkSent(status, answer) }

// crowdTime is within which a crowd of sleepers wakes up, crowdRate how many of
// them are sent per second at least.
const (
	crowdTime = 10 * time.Second
	crowdRate = 1000
)

// crowdCaller sends to a handler that sleeps, so that all wake up within a short
// time, which begins when all have fallen asleep.
type crowdCaller struct {
	path  string
	wakes time.Time // the first of them
	rand  *rand.Rand
	body  []byte
}

func newCrowd(s step, prefix string, worker int) caller {
	return &crowdCaller{
		path: sendPath(prefix, "Bench", "sleep"), wakes: time.Now().Add(asleep(s.size)),
		rand: rand.New(rand.NewPCG(1, uint64(worker))),
	}
}

// asleep is how long a crowd has to fall asleep.
func asleep(size int) time.Duration {
	return time.Duration(size)*time.Second/crowdRate + 5*time.Second
}

func (c *crowdCaller) next() (string, []byte) {
	d := time.Until(c.wakes) + time.Duration(c.rand.Int64N(int64(crowdTime)))
	c.body = strconv.AppendInt(c.body[:0], d.Milliseconds(), 10)
	return c.path, c.body
}

func (c *crowdCaller) check(status int, answer []byte) error { return checkSent(status, answer) }

var errNotAccepted = errors.New("a send was not accepted")

// checkSent looks for what the answer to a new send must hold. It does not decode
// it: that would cost more than making the request.
func checkSent(status int, answer []byte) error {
	if status != http.StatusAccepted || !bytes.Contains(answer, []byte(`"inv_1`)) || !bytes.Contains(answer, []byte(`"Accepted"`)) {
		return fmt.Errorf("%w: status %d, %.200q", errNotAccepted, status, answer)
	}
	return nil
}
