package harness

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the child when the test process exits, so that
// no servers are left after a test timeout.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
