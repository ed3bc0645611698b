package history

import "fmt"

// The events of a critical section.
const (
	Enter = "enter"
	Leave = "leave"
)

// SectionEvent is what Exclusive/work reports when it enters and leaves its critical
// section.
type SectionEvent struct {
	Nonce string `json:"nonce"`
	Event string `json:"event"`
}

// Section is the result of Exclusive/work: the nonces of the committed events.
type Section struct {
	Enter string `json:"enter"`
	Leave string `json:"leave"`
}

// CheckExclusive returns an error if critical sections of one key overlap. Events are in
// order of arrival; events whose nonce is in no section come from abandoned attempts
// and are ignored.
func CheckExclusive(events []SectionEvent, sections []Section) error {
	partner := map[string]string{} // nonce of a section's event -> nonce of its other event
	for _, s := range sections {
		if _, duplicate := partner[s.Enter]; duplicate {
			return fmt.Errorf("two sections have the enter event %s", s.Enter)
		}
		partner[s.Enter], partner[s.Leave] = s.Leave, s.Enter
	}
	inside, seen := "", 0
	for i, e := range events {
		entered, committed := partner[e.Nonce]
		if !committed {
			continue
		}
		seen++
		switch {
		case e.Event == Enter && inside != "":
			return fmt.Errorf("event %d: %s entered while %s was inside", i, e.Nonce, inside)
		case e.Event == Enter:
			inside = e.Nonce
		case inside != entered:
			return fmt.Errorf("event %d: %s left, which entered as %s, while %q was inside", i, e.Nonce, entered, inside)
		default:
			inside = ""
		}
	}
	if seen != len(partner) {
		return fmt.Errorf("of %d events in the results only %d were reported", len(partner), seen)
	}
	return nil
}
