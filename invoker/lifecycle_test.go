package invoker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// passage is a state with what has happened to the stream since the attempt began.
type passage struct {
	state                          state
	opened, closed, ended, watched bool
}

// TestLifecycle follows all transitions: the request body is closed at most once, no
// attempt ends with its stream in use or its deadlines checked, and each task can end.
func TestLifecycle(t *testing.T) {
	seen := map[passage]bool{}
	reached := map[state]bool{}
	var follow func(h passage)
	follow = func(h passage) {
		if seen[h] {
			return
		}
		seen[h], reached[h.state] = true, true
		for e, next := range transitions[h.state] {
			if next.to == none {
				require.Zero(t, next.do, "%v, event %d", h.state, e)
				continue
			}
			n := h
			n.state = next.to
			switch event(e) {
			case granted:
				n = passage{state: next.to, opened: true}
			case replayed:
				n.watched = true
			}
			if next.do&closeWrite != 0 {
				require.True(t, n.opened && !n.closed && !n.ended, "%v, event %d: the request body is closed twice", h.state, e)
				n.closed = true
			}
			if next.do&(endStream|resetStream) != 0 {
				n.ended = true
			}
			if next.do&unwatch != 0 {
				n.watched = false
			}
			require.Equal(t, n.opened && !n.ended, next.to.open(), "%v, event %d", h.state, e)
			if !next.to.open() {
				require.False(t, n.watched, "%v, event %d: deadlines of an attempt that is not open", h.state, e)
			}
			if next.to == backingOff || next.to == gone {
				n = passage{state: next.to}
			}
			follow(n)
		}
		if h.state != gone {
			require.Equal(t, gone, transitions[h.state][drop].to, "%v", h.state)
		}
	}
	follow(passage{state: waiting})
	for s := waiting; s < stateCount; s++ {
		require.True(t, reached[s], "%v", s)
	}
	require.Equal(t, [eventCount]transition{}, transitions[gone])
	require.Equal(t, [eventCount]transition{}, transitions[none])
}
