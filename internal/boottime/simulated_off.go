//go:build !failpoints

package boottime

import "time"

// simulated returns the total time of simulated suspension.
func simulated() time.Duration { return 0 }
