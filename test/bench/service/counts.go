package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// counts are the executions of the handlers since the start.
type counts struct {
	mu     sync.Mutex // covers the fields below
	done   map[string]int64
	latest time.Time            // when done changed
	due    map[string]time.Time // wake-up time of each sleep, by invocation
	late   []time.Duration      // delays of wake-ups
	ended  []time.Time          // when holds ended whose slots were not used again
	gaps   []time.Duration      // from the end of a hold to the start of the next one
}

func newCounts() *counts {
	return &counts{done: map[string]int64{}, due: map[string]time.Time{}}
}

// add counts one execution.
func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(name)
}

func (c *counts) addLocked(name string) {
	c.done[name]++
	c.latest = time.Now()
}

// startSleep returns the wake-up time of the invocation, relative to its first attempt.
func (c *counts) startSleep(id string, d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	due, known := c.due[id]
	if !known {
		due = time.Now().Add(d)
		c.due[id] = due
	}
	return due
}

// endSleep records the delay of a wake-up.
func (c *counts) endSleep(late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = append(c.late, late)
	c.addLocked("sleep")
}

// startHold records how long the slot of the handler was unused: the slot of the hold that
// ended first is used again first.
func (c *counts) startHold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ended) > 0 {
		c.gaps = append(c.gaps, time.Since(c.ended[0]))
		c.ended = c.ended[1:]
	}
}

// endHold counts an execution of hold.
func (c *counts) endHold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked("hold")
	c.ended = append(c.ended, c.latest)
}

// countsBody is the response body, which the bench program decodes.
type countsBody struct {
	Done   map[string]int64 `json:"done"`
	Latest time.Time        `json:"latest"`
	Late   []time.Duration  `json:"late,omitempty"` // only with the query late=1
	Gaps   []time.Duration  `json:"gaps,omitempty"` // as well
}

// ServeHTTP returns the counts; with the query late=1 also all delays.
func (c *counts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := countsBody{Done: c.done, Latest: c.latest}
	if r.URL.Query().Get("late") != "" {
		a.Late, a.Gaps = c.late, c.gaps
	}
	_ = json.NewEncoder(w).Encode(a) // fails only if the client disconnected
}
