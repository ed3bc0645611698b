package kafka

import (
	"os/exec"
	"syscall"
)

// endWithTest makes a process end with this one, however this one ends.
func endWithTest(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
