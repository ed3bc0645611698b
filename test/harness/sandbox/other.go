//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// Hub is the address of the test process as the hosts see it.
const Hub = "127.0.0.1"

var errLinux = errors.New("network namespaces and mounts require Linux")

// Run runs the tests, without a sandbox.
func Run(run func() int) int { return run() }

// Inside returns false.
func Inside() bool { return false }

// Available returns an error.
func Available() error { return errLinux }

// DisksAvailable returns an error.
func DisksAvailable() error { return errLinux }

// Network exists on Linux only.
type Network struct{ Hosts []*Host }

// Host exists on Linux only.
type Host struct{ IP string }

// NewNetwork fails.
func NewNetwork(int) (*Network, error) { return nil, errLinux }

// Start fails.
func (*Host) Start(*exec.Cmd) error { return errLinux }

// Reaches returns false.
func (*Host) Reaches(string, time.Duration) bool { return false }

// Block fails.
func (*Network) Block(_, _ int) error { return errLinux }

// Unblock fails.
func (*Network) Unblock(_, _ int) error { return errLinux }

// Unplug fails.
func (*Network) Unplug(int) error { return errLinux }

// Plug fails.
func (*Network) Plug(int) error { return errLinux }

// Heal fails.
func (*Network) Heal() error { return errLinux }

// Close does nothing.
func (*Network) Close() error { return nil }

// Disk exists on Linux only.
type Disk struct{ Path string }

// NewDisk fails.
func NewDisk(string, int64) (*Disk, error) { return nil, errLinux }

// Fill fails.
func (*Disk) Fill(int64) error { return errLinux }

// Unfill fails.
func (*Disk) Unfill() error { return errLinux }

// Free fails.
func (*Disk) Free() (int64, error) { return 0, errLinux }

// Freeze fails.
func (*Disk) Freeze() error { return errLinux }

// Thaw fails.
func (*Disk) Thaw() error { return errLinux }

// Slow fails.
func (*Disk) Slow(context.Context, time.Duration, time.Duration) error { return errLinux }

// SyncTime fails.
func (*Disk) SyncTime() (time.Duration, error) { return 0, errLinux }

// Close does nothing.
func (*Disk) Close() error { return nil }
