package harness

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the child when the test process dies, so
// that a timed-out test run leaves no servers behind.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
