package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside marks the process that runs in the namespaces, with what it can have there.
const (
	inside       = "TEST_SANDBOX"
	withDisks    = "network and disks"
	withoutDisks = "network" // who is root of a user namespace only may not mount
)

// Why there may be no sandbox, or less of one.
const (
	networksNeed = "network namespaces need the program ip, and root or the right of all users to user namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
	disksNeed    = "file systems of their own need root, mkfs.ext4, mount and fsfreeze"
)

// Run runs the tests of this binary in a sandbox, or without one where none can be
// made, and returns the exit code.
func Run(run func() int) int {
	if os.Getenv(inside) != "" {
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "sandbox:", err)
			return 1
		}
		return run()
	}
	what := possible()
	if what == "" {
		return run()
	}
	return again(what)
}

// Available reports whether hosts can be made, and if not, why.
func Available() error {
	if os.Getenv(inside) == "" {
		return errors.New(networksNeed)
	}
	return nil
}

// DisksAvailable reports whether disks can be made, and if not, why.
func DisksAvailable() error {
	if os.Getenv(inside) != withDisks {
		return errors.New(disksNeed)
	}
	return nil
}

// possible tells what this user may make and has the tools for, "" for nothing.
func possible() string {
	probe := exec.Command("ip", "link", "set", "lo", "up")
	probe.SysProcAttr = namespaces()
	if probe.Run() != nil {
		return ""
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "fsfreeze"} {
		if _, err := exec.LookPath(tool); err != nil || os.Geteuid() != 0 {
			return withoutDisks
		}
	}
	return withDisks
}

// namespaces are those of the sandbox. Who is not root becomes it in a user namespace,
// which is enough to make networks there.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// again runs this binary with its arguments in new namespaces.
func again(what string) int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"="+what)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = namespaces()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return 1
	}
	// The test tool interrupts this process when time is up; the other one has the
	// goroutines to show.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(1, exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return 1
	}
	return 0
}

// prepare makes the new namespaces usable: mounts stay here, the loop device
// works and packets are forwarded between hosts.
func prepare() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := ip("link", "set", "lo", "up"); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

func ip(args ...string) error { return command(exec.Command("ip", args...)) }

func command(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
