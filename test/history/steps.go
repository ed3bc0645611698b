package history

import (
	"fmt"
	"slices"
)

// Run is the input of the handler Stepper/run.
type Run struct {
	ID    string `json:"id"` // name of the record of executions
	Steps int    `json:"steps"`
}

// Execution is what a step reports each time it is really executed.
type Execution struct {
	Step  int      `json:"step"`
	Nonce string   `json:"nonce"` // made up by this execution; the step's result
	Seen  []string `json:"seen"`  // results that the handler got for the steps before
}

// CheckSteps tells what is wrong with an invocation whose executions arrived in
// the given order and whose handler returned output. A step whose result a later
// step has seen is acknowledged: its result never changes and it is never
// executed again. Executions before that may be many.
func CheckSteps(executions []Execution, output []string) error {
	return checkSteps(executions, output, false)
}

// CheckRecordedSteps is CheckSteps for histories in which a former leader may have
// been alive and running while it was cut off: an attempt that it has open goes on in
// the service until its connection ends, and may begin a step beside the attempt of the
// new leader. What such an attempt executes is never recorded, so nobody ever sees it.
// A node that was stopped is no such case, since it sends nothing before it knows
// whether it still leads.
func CheckRecordedSteps(executions []Execution, output []string) error {
	return checkSteps(executions, output, true)
}

func checkSteps(executions []Execution, output []string, zombies bool) error {
	acknowledged := map[int]string{} // step -> nonce that somebody has seen
	executed := map[int][]string{}
	for at, e := range executions {
		if nonce, ok := acknowledged[e.Step]; ok && !zombies {
			return fmt.Errorf("execution %d: step %d ran again (nonce %s) after %s was acknowledged", at, e.Step, e.Nonce, nonce)
		}
		if len(e.Seen) != e.Step {
			return fmt.Errorf("execution %d: step %d saw %d results, want %d", at, e.Step, len(e.Seen), e.Step)
		}
		if err := acknowledge(acknowledged, executed, e.Seen); err != nil {
			return fmt.Errorf("execution %d: %w", at, err)
		}
		executed[e.Step] = append(executed[e.Step], e.Nonce)
	}
	if err := acknowledge(acknowledged, executed, output); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

// acknowledge notes that results were seen and requires that they are what was
// seen before, and come from an execution.
func acknowledge(acknowledged map[int]string, executed map[int][]string, results []string) error {
	for step, nonce := range results {
		before, ok := acknowledged[step]
		if ok && before != nonce {
			return fmt.Errorf("the result of step %d changed from %s to %s", step, before, nonce)
		}
		if !slices.Contains(executed[step], nonce) {
			return fmt.Errorf("the result %s of step %d comes from no execution", nonce, step)
		}
		acknowledged[step] = nonce
	}
	return nil
}
