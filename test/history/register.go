package history

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Change is the input of Register/change: write Value, with If set only when the
// register holds *If.
type Change struct {
	Value int  `json:"value"`
	If    *int `json:"if,omitempty"`
}

// Access is an operation on a register. Without Change it is a read.
type Access struct {
	Client  int // operations of one client do not overlap
	Change  *Change
	Got     int // value of the register after the operation; valid only if Outcome is OK
	Outcome Outcome
	Span    Span
}

// MaxAccesses is the maximum number of operations on one register that can be checked.
const MaxAccesses = 500

// registerTimeout limits the search for a linearization.
const registerTimeout = 60 * time.Second

// registerModel is the sequential specification of a register. The input is an Access.
var registerModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		value, a := state.(int), input.(Access)
		if a.Change != nil && (a.Change.If == nil || *a.Change.If == value) {
			value = a.Change.Value
		}
		return a.Outcome == Unknown || a.Got == value, value
	},
	DescribeOperation: func(input, _ any) string { return input.(Access).String() },
}

// String describes the access.
func (a Access) String() string {
	switch {
	case a.Change == nil:
		return fmt.Sprintf("read %d (%s)", a.Got, a.Outcome)
	case a.Change.If != nil:
		return fmt.Sprintf("write %d if %d, then %d (%s)", a.Change.Value, *a.Change.If, a.Got, a.Outcome)
	}
	return fmt.Sprintf("write %d (%s)", a.Change.Value, a.Outcome)
}

// CheckRegister checks that the accesses of one register with initial value 0 are
// linearizable. It also returns an error if the search times out.
func CheckRegister(accesses []Access) error {
	if len(accesses) > MaxAccesses {
		return fmt.Errorf("too many operations to check: %d", len(accesses))
	}
	var operations []porcupine.Operation
	for i, a := range accesses {
		if a.Outcome == Failed || (a.Change == nil && a.Outcome == Unknown) {
			continue // has no effect
		}
		o := porcupine.Operation{ClientId: a.Client, Input: a, Call: a.Span.Start.UnixNano(), Return: a.Span.End.UnixNano()}
		if a.Outcome == Unknown {
			// It may take effect at any time, while its client continues.
			o.ClientId, o.Return = -1-i, math.MaxInt64
		}
		operations = append(operations, o)
	}
	result, info := porcupine.CheckOperationsVerbose(registerModel, operations, registerTimeout)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("not linearizable: of %d operations at most %d can be linearized: %v", len(operations), longestLinearization(info), accesses)
	}
	return fmt.Errorf("timed out after %s checking %d operations", registerTimeout, len(operations))
}

// longestLinearization returns the size of the longest partial linearization.
func longestLinearization(info porcupine.LinearizationInfo) int {
	most := 0
	for _, part := range info.PartialLinearizations() {
		for _, p := range part {
			most = max(most, len(p))
		}
	}
	return most
}
