package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultSteps are the steps measured by default: each workload once, echo with one and
// many workers, and counters with one and many keys.
const defaultSteps = "echo/1,echo/64,steps:10/10,counter:1/64,counter:1000/64,send:5000/64,fanout:10/16,sleep:1000/64,limit:5/64"

// workload is a kind of operation.
type workload struct {
	size     int    // default size; 0 for workloads without a size
	oneWay   bool   // the size is the number of sends, all of which must be executed exactly once
	limited  bool   // the size is the concurrency limit of the scope that is called
	waiting  bool   // the size is the number of delayed invocations stored before measuring
	payload  bool   // the size is that of request and response, in bytes
	admin    string // method of the requests, which go to the admin API; "" for calls
	counter  string
	per      func(size int) int64 // executions of counter per operation
	newCalls func(s step, prefix string, worker int) callGenerator
}

func onePerOperation(int) int64       { return 1 }
func nonePerOperation(int) int64      { return 0 }
func sizePerOperation(size int) int64 { return int64(size) }

var workloads = map[string]workload{
	"echo":    {counter: "echo", per: onePerOperation, newCalls: newEcho},
	"steps":   {size: 10, counter: "step", per: sizePerOperation, newCalls: newSum("steps")},
	"fanout":  {size: 10, counter: "identity", per: sizePerOperation, newCalls: newSum("fanout")},
	"payload": {size: 64 << 10, payload: true, counter: "payload", per: onePerOperation, newCalls: newPayload},
	"waiting": {size: 10000, waiting: true, counter: "echo", per: onePerOperation, newCalls: newEcho},
	"counter": {size: 1, counter: "add", per: onePerOperation, newCalls: newCounter},
	"send":    {size: 5000, oneWay: true, counter: "echo", per: onePerOperation, newCalls: newSend},
	"timers":  {size: 1000, oneWay: true, counter: "sleep", per: onePerOperation, newCalls: newTimers},
	"limit":   {size: 5, limited: true, counter: "hold", per: onePerOperation, newCalls: newLimit},
	"patch":   {admin: "PATCH", per: nonePerOperation, newCalls: newPatch},
	"replace": {admin: "POST", per: nonePerOperation, newCalls: newReplace},
	"sleep":   {size: 1000, oneWay: true, counter: "sleep", per: onePerOperation, newCalls: newSleep},
}

// step is a workload with its size and number of workers.
type step struct {
	workload
	name    string
	size    int // number of steps, calls, keys, sends or bytes
	workers int
	// partitions is the number of partitions, 0 for that of the target.
	partitions int
}

// String returns the text that parseStep parses.
func (s step) String() string {
	text := s.name
	if s.workload.size > 0 {
		text += ":" + strconv.Itoa(s.size)
	}
	text += "/" + strconv.Itoa(s.workers)
	if s.partitions > 0 {
		text += "@" + strconv.Itoa(s.partitions)
	}
	return text
}

// environment returns the additional environment of the server.
func (s step) environment() map[string]string {
	env := map[string]string{}
	if s.limited {
		env["EXPERIMENTAL_ENABLE_PROTOCOL_V7"], env["EXPERIMENTAL_ENABLE_VQUEUES"] = "true", "true"
	}
	if s.partitions > 0 {
		env["DEFAULT_NUM_PARTITIONS"] = strconv.Itoa(s.partitions)
	}
	return env
}

// fileName is the name of the step as part of a file name.
func (s step) fileName() string {
	return strings.NewReplacer("/", "-", ":", "-", "@", "-").Replace(s.String())
}

// contentType is that of the requests.
func (s step) contentType() string {
	if s.payload {
		return "application/octet-stream"
	}
	return "application/json"
}

// idealRate is the rate of operations if every slot were always in use; 0 without a limit.
func (s step) idealRate() float64 {
	if !s.limited {
		return 0
	}
	return float64(s.size) / holdTime.Seconds()
}

// maxIdle is how long no execution may happen after all sends.
func (s step) maxIdle() time.Duration {
	if s.name == "timers" {
		return setupTime(s.size)
	}
	return 0
}

// parseSteps parses comma-separated steps.
func parseSteps(text string) ([]step, error) {
	var list []step
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseStep(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(other step) bool { return other.String() == s.String() }) {
			return nil, fmt.Errorf("duplicate step %s", s)
		}
		list = append(list, s)
	}
	return list, nil
}

// parseStep parses workload[:size][/workers][@partitions], such as steps:10/64.
func parseStep(text string) (step, error) {
	rest, partitions, err := cutNumber(text, "@", 0)
	if err != nil {
		return step{}, err
	}
	rest, workers, err := cutNumber(rest, "/", 1)
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
		return step{}, fmt.Errorf("step %q: unknown workload %q; use one of %s", text, name, strings.Join(slices.Sorted(maps.Keys(workloads)), ", "))
	case w.size == 0 && size != 0:
		return step{}, fmt.Errorf("step %q: %s has no size", text, name)
	case size == 0:
		size = w.size
	}
	return step{workload: w, name: name, size: size, workers: workers, partitions: partitions}, nil
}

// cutNumber splits off the number after a separator, by default missing.
func cutNumber(text, separator string, missing int) (rest string, n int, err error) {
	rest, digits, found := strings.Cut(text, separator)
	if !found {
		return text, missing, nil
	}
	n, err = strconv.Atoi(digits)
	if err != nil || n < 1 {
		return "", 0, fmt.Errorf("step %q: %q is not a positive number", text, digits)
	}
	return rest, n, nil
}
