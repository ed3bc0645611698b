package history

import "fmt"

// Tally is what one client knows of a counter that only it adds to.
type Tally struct {
	Acked   int64   // sum of the amounts that were acknowledged
	Unknown []int64 // amounts without an answer: each may count once or not at all
}

// maxUnknown bounds the search for the amounts that took effect.
const maxUnknown = 20

// Settle compares the counter's value with the tally. If a choice of unknown
// amounts explains it, the tally starts afresh from there. Amounts are random and
// large, so that a loss and a repetition do not cancel out.
func (t *Tally) Settle(value int64) error {
	if len(t.Unknown) > maxUnknown {
		return fmt.Errorf("%d amounts without an answer are too many to check", len(t.Unknown))
	}
	rest := value - t.Acked
	for choice := range 1 << len(t.Unknown) {
		sum := int64(0)
		for i, amount := range t.Unknown {
			if choice&(1<<i) != 0 {
				sum += amount
			}
		}
		if sum == rest {
			t.Acked, t.Unknown = value, nil
			return nil
		}
	}
	return fmt.Errorf("counter is %d, acknowledged are %d: no choice of the unknown %v explains %d", value, t.Acked, t.Unknown, rest)
}
