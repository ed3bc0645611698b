package history

import "time"

// SlotUsage is the result of Slots/report: how many invocations of Slots/hold ran
// concurrently since the service process started. Overlapping attempts of one
// invocation count once.
type SlotUsage struct {
	Peak      int           `json:"peak"`      // most concurrent invocations
	Completed int           `json:"completed"` // completed invocations
	Held      time.Duration `json:"held"`      // total hold time, including running invocations
}
