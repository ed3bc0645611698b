package history

import (
	"fmt"
	"time"
)

// The events of a passage.
const (
	Enter = "enter"
	Leave = "leave"
)

// Passage is what Exclusive/work reports when it comes and when it goes.
type Passage struct {
	Nonce string `json:"nonce"`
	Event string `json:"event"`
}

// Stay is the result of Exclusive/work: the nonces of the passages that counted.
type Stay struct {
	Enter string `json:"enter"`
	Leave string `json:"leave"`
}

// CheckExclusive tells whether two invocations of one key were inside at the same
// time. Passages are in order of arrival; those whose nonce no stay has come from
// attempts that were given up and had no effect.
func CheckExclusive(passages []Passage, stays []Stay) error {
	other := map[string]string{} // nonce of a stay's begin or end -> that of its other one
	for _, s := range stays {
		if _, twice := other[s.Enter]; twice {
			return fmt.Errorf("two invocations have entered as %s", s.Enter)
		}
		other[s.Enter], other[s.Leave] = s.Leave, s.Enter
	}
	inside, seen := "", 0
	for i, p := range passages {
		partner, counts := other[p.Nonce]
		if !counts {
			continue
		}
		seen++
		switch {
		case p.Event == Enter && inside != "":
			return fmt.Errorf("passage %d: %s entered while %s was inside", i, p.Nonce, inside)
		case p.Event == Enter:
			inside = p.Nonce
		case inside != partner:
			return fmt.Errorf("passage %d: %s left, which entered as %s, while %q was inside", i, p.Nonce, partner, inside)
		default:
			inside = ""
		}
	}
	if seen != len(other) {
		return fmt.Errorf("of %d passages in the results only %d have happened", len(other), seen)
	}
	return nil
}

// Nap is the result of Waiting/sleep, on the service's clock.
type Nap struct {
	Asked time.Duration `json:"asked"`
	Begin time.Time     `json:"begin"`
	End   time.Time     `json:"end"`
}

// Check tells whether a sleeper woke up before its time.
func (n Nap) Check() error {
	if slept := n.End.Sub(n.Begin); slept < n.Asked-earliness {
		return fmt.Errorf("early: woke up after %s of %s", slept, n.Asked)
	}
	return nil
}
