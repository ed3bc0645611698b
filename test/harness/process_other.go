//go:build !linux

package harness

import "os/exec"

// dieWithParent needs a kernel feature that only Linux has; elsewhere a test run
// that is killed may leave processes behind.
func dieWithParent(*exec.Cmd) {}
