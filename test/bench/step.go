package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultSteps is what is measured when nobody says what: each workload once,
// with echo alone and among many, and one hot key beside many keys.
const defaultSteps = "echo/1,echo/64,steps:10/10,counter:1/64,counter:1000/64,send:5000/64,fanout:10/16,sleep:1000/64"

// workload is a kind of operation.
type workload struct {
	size   int  // if the step gives none; 0 for workloads without a size
	oneWay bool // the size is the number of sends, and all must have been executed at the end
	counts string
	per    func(size int) int64 // executions that the service counts under counts, for one operation
	caller func(s step, prefix string, worker int) caller
}

func one(int) int64       { return 1 }
func each(size int) int64 { return int64(size) }

var workloads = map[string]workload{
	"echo":    {counts: "echo", per: one, caller: newEcho},
	"steps":   {size: 10, counts: "step", per: each, caller: newSum("steps")},
	"fanout":  {size: 10, counts: "identity", per: each, caller: newSum("fanout")},
	"counter": {size: 1, counts: "add", per: one, caller: newCounter},
	"send":    {size: 5000, oneWay: true, counts: "echo", per: one, caller: newSend},
	"crowd":   {size: 1000, oneWay: true, counts: "sleep", per: one, caller: newCrowd},
	"sleep":   {size: 1000, oneWay: true, counts: "sleep", per: one, caller: newSleep},
}

// step is one thing to measure.
type step struct {
	workload
	name    string
	size    int // steps, calls, keys or sends, by workload
	workers int
}

// String is the text that parseStep reads.
func (s step) String() string {
	text := s.name
	if s.workload.size > 0 {
		text += ":" + strconv.Itoa(s.size)
	}
	return text + "/" + strconv.Itoa(s.workers)
}

// quiet is how long nothing may be executed after all has been sent.
func (s step) quiet() time.Duration {
	if s.name == "crowd" {
		return asleep(s.size)
	}
	return 0
}

// parseSteps reads steps with commas between them.
func parseSteps(text string) ([]step, error) {
	var list []step
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseStep(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(other step) bool { return other.String() == s.String() }) {
			return nil, fmt.Errorf("step %s is named twice", s)
		}
		list = append(list, s)
	}
	return list, nil
}

// parseStep reads workload[:size][/workers], such as steps:10/64.
func parseStep(text string) (step, error) {
	rest, workers, err := cutNumber(text, "/", 1)
	if err != nil {
		return step{}, err
	}
	name, size, err := cutNumber(rest, ":", 0)
	if err != nil {
		return step{}, err
	}
	w, ok := workloads[name]
	switch {
	case !ok:
		return step{}, fmt.Errorf("step %q: there is no workload %q, but %s", text, name, strings.Join(slices.Sorted(maps.Keys(workloads)), ", "))
	case w.size == 0 && size != 0:
		return step{}, fmt.Errorf("step %q: %s has no size", text, name)
	case size == 0:
		size = w.size
	}
	return step{workload: w, name: name, size: size, workers: workers}, nil
}

// cutNumber splits off the number behind a separator; without one it is missing.
func cutNumber(text, separator string, missing int) (rest string, n int, err error) {
	rest, digits, found := strings.Cut(text, separator)
	if !found {
		return text, missing, nil
	}
	n, err = strconv.Atoi(digits)
	if err != nil || n < 1 {
		return "", 0, fmt.Errorf("step %q: %q is not a number of 1 or more", text, digits)
	}
	return rest, n, nil
}
