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

// inside marks the process that runs in the namespaces.
const inside = "TEST_SANDBOX"

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
	if !possible() {
		return run()
	}
	return again()
}

// Available reports whether hosts and disks can be made, and if not, why.
func Available() error {
	if os.Getenv(inside) == "" {
		return errors.New("network namespaces and mounts need Linux, root, ip and mkfs.ext4")
	}
	return nil
}

// possible reports whether this user may make namespaces and has the tools.
func possible() bool {
	for _, tool := range []string{"ip", "mkfs.ext4", "mount", "fsfreeze"} {
		if _, err := exec.LookPath(tool); err != nil {
			return false
		}
	}
	probe := exec.Command("ip", "link", "set", "lo", "up")
	probe.SysProcAttr = namespaces()
	return os.Geteuid() == 0 && probe.Run() == nil
}

func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
}

// again runs this binary with its arguments in new namespaces.
func again() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
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
