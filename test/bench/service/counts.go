package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// counts is what the handlers have done since the start.
type counts struct {
	mu     sync.Mutex // covers all below
	done   map[string]int64
	latest time.Time            // when done changed
	due    map[string]time.Time // by invocation, of those asleep or once asleep
	late   []time.Duration      // of those that woke up
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

// fallsAsleep returns when the invocation is due, counted from its first attempt.
func (c *counts) fallsAsleep(id string, d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	due, known := c.due[id]
	if !known {
		due = time.Now().Add(d)
		c.due[id] = due
	}
	return due
}

// wakesUp notes how late an invocation that slept goes on.
func (c *counts) wakesUp(late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = append(c.late, late)
	c.addLocked("sleep")
}

// answer is the body that the bench program decodes.
type answer struct {
	Done   map[string]int64 `json:"done"`
	Latest time.Time        `json:"latest"`
	Late   []time.Duration  `json:"late,omitempty"` // only if asked for
}

// ServeHTTP tells the counts; with the query late=1 also all latenesses.
func (c *counts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := answer{Done: c.done, Latest: c.latest}
	if r.URL.Query().Get("late") != "" {
		a.Late = c.late
	}
	_ = json.NewEncoder(w).Encode(a) // fails only if the asker has gone
}
