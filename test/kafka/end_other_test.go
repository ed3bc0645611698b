//go:build !linux

package kafka

import "os/exec"

func endWithTest(*exec.Cmd) {}
