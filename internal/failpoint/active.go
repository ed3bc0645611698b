//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

var active = parse(os.Getenv("FAILPOINTS"))

// parse panics on bad input: a test that activates nothing would prove nothing.
func parse(text string) map[Name]int {
	known := map[Name]bool{
		AckBeforeCommit: true, NoDeduplication: true, IgnoreLocks: true, EarlyTimers: true,
		EpochWithoutTerm: true, EarlierResponses: true, NonvoterResponses: true, MonotonicTimers: true,
		CheckpointCommands: true, TrailingLogs: true, DigestPauseMillis: true, ReevaluatedCounters: true, RingLeaves: true,
		YieldingBytes: true, BulkBytes: true, OvertakenProgress: true,
	}
	values := map[Name]int{}
	for _, item := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, number, hasValue := strings.Cut(item, "=")
		if !known[Name(name)] {
			panic(fmt.Sprintf("FAILPOINTS: unknown failpoint %q", name))
		}
		value := 1
		if hasValue {
			var err error
			if value, err = strconv.Atoi(number); err != nil {
				panic(fmt.Sprintf("FAILPOINTS: value of %q: %v", name, err))
			}
		}
		values[Name(name)] = value
	}
	return values
}

// Active reports whether a failpoint is activated.
func Active(n Name) bool { return active[n] != 0 }

// Or returns the value that a failpoint is activated with, otherwise the given one.
func Or(n Name, value int) int {
	if v, ok := active[n]; ok {
		return v
	}
	return value
}

var pause atomic.Pointer[func(step Name)]

// OnPause makes Pause call f.
func OnPause(f func(step Name)) { pause.Store(&f) }

// Pause may block before a step.
func Pause(step Name) {
	if f := pause.Load(); f != nil {
		(*f)(step)
	}
}
