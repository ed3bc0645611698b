package history

import (
	"fmt"
	"time"
)

// Sleep is the result of Waiting/sleep, by the service's clock.
type Sleep struct {
	Requested time.Duration `json:"requested"`
	Begin     time.Time     `json:"begin"`
	End       time.Time     `json:"end"`
}

// Check returns an error if the handler woke up too early.
func (s Sleep) Check() error {
	if slept := s.End.Sub(s.Begin); slept < s.Requested-clockTolerance {
		return fmt.Errorf("early: woke up after %s of %s", slept, s.Requested)
	}
	return nil
}
