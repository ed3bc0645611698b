//go:build !failpoints

package failpoint

// Active reports whether a failpoint is activated.
func Active(Name) bool { return false }

// Or returns the value that a failpoint is activated with, otherwise the given one.
func Or(_ Name, value int) int { return value }

// Pause may block before a step.
func Pause(Name) {}
