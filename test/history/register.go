package history

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Change is the input of Register/change: write Value, or write it only If that is
// what the register holds.
type Change struct {
	Value int  `json:"value"`
	If    *int `json:"if,omitempty"`
}

// Access is one operation on a register. A nil Change reads.
type Access struct {
	Client  int // operations of one client do not overlap
	Change  *Change
	Got     int // what the register held afterwards; means something only if OK
	Outcome Outcome
	Span    Span
}

// MaxAccesses is how many operations on one register can be checked.
const MaxAccesses = 500

// registerLimit is how long the search for an order may take.
const registerLimit = 60 * time.Second

// registerModel is what one register may do. The input is an Access.
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

// CheckRegister tells whether the accesses of one register, which began as 0, can
// have happened one after the other. An order that is not found in time is an error
// too.
func CheckRegister(accesses []Access) error {
	if len(accesses) > MaxAccesses {
		return fmt.Errorf("%d operations are too many to check", len(accesses))
	}
	var operations []porcupine.Operation
	for i, a := range accesses {
		if a.Outcome == Failed || (a.Change == nil && a.Outcome == Unknown) {
			continue // has no effect
		}
		o := porcupine.Operation{ClientId: a.Client, Input: a, Call: a.Span.Start.UnixNano(), Return: a.Span.End.UnixNano()}
		if a.Outcome == Unknown {
			// It may take effect at any time, and its client has gone on meanwhile.
			o.ClientId, o.Return = -1-i, math.MaxInt64
		}
		operations = append(operations, o)
	}
	result, info := porcupine.CheckOperationsVerbose(registerModel, operations, registerLimit)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("not linearizable: of %d operations at most %d fit: %v", len(operations), longest(info), accesses)
	}
	return fmt.Errorf("no answer within %s for %d operations", registerLimit, len(operations))
}

// longest returns how many operations of the history fit into one order.
func longest(info porcupine.LinearizationInfo) int {
	most := 0
	for _, part := range info.PartialLinearizations() {
		for _, p := range part {
			most = max(most, len(p))
		}
	}
	return most
}
