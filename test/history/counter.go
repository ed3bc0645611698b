package history

import "fmt"

// CounterModel is what the only client of a counter knows about it.
type CounterModel struct {
	Acked   int64   // sum of the acknowledged amounts
	Unknown []int64 // amounts without a response: each was added at most once
}

// maxUnknown bounds the search over the subsets of unknown amounts.
const maxUnknown = 20

// Reconcile compares the counter's value with the model. If a subset of the unknown
// amounts explains the value, the model is reset to it. Amounts must be random and large
// so that a lost and a duplicate addition do not cancel out.
func (m *CounterModel) Reconcile(value int64) error {
	if len(m.Unknown) > maxUnknown {
		return fmt.Errorf("too many unknown amounts to check: %d", len(m.Unknown))
	}
	rest := value - m.Acked
	for subset := range 1 << len(m.Unknown) {
		sum := int64(0)
		for i, amount := range m.Unknown {
			if subset&(1<<i) != 0 {
				sum += amount
			}
		}
		if sum == rest {
			m.Acked, m.Unknown = value, nil
			return nil
		}
	}
	return fmt.Errorf("counter is %d, %d acknowledged: no subset of the unknown amounts %v explains %d", value, m.Acked, m.Unknown, rest)
}
