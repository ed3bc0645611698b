//go:build !linux

package boottime

import "time"

// readSuspended is not available on this platform, so Elapsed equals time.Since.
func readSuspended() time.Duration { return 0 }
