//go:build !linux || !(amd64 || arm64)

package sim

import "os/exec"

// startSeeded starts a process. On this platform its random choices do not depend on the seed.
func startSeeded(cmd *exec.Cmd, _ uint64) error { return cmd.Start() }
