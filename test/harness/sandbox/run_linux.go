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

// sandboxEnv is set in the re-executed process, to its capabilities.
const (
	sandboxEnv      = "TEST_SANDBOX"
	networkAndDisks = "network and disks"
	networkOnly     = "network" // root in a user namespace cannot mount
)

// Requirements that Available and DisksAvailable report.
const (
	networkRequirements = "network namespaces require the ip command, and root or unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
	diskRequirements    = "separate file systems require root, mkfs.ext4, mount and fsfreeze"
)

// Run runs the tests of this binary in a sandbox, or without one if it is not available,
// and returns the exit code.
func Run(run func() int) int {
	if Inside() {
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "sandbox:", err)
			return 1
		}
		return run()
	}
	capabilities := detectCapabilities()
	if capabilities == "" {
		return run()
	}
	return reexec(capabilities)
}

// Inside reports whether this process runs in a sandbox, which has no network.
func Inside() bool { return os.Getenv(sandboxEnv) != "" }

// Available returns nil if hosts can be created, otherwise the reason.
func Available() error {
	if !Inside() {
		return errors.New(networkRequirements)
	}
	return nil
}

// DisksAvailable returns nil if disks can be created, otherwise the reason.
func DisksAvailable() error {
	if os.Getenv(sandboxEnv) != networkAndDisks {
		return errors.New(diskRequirements)
	}
	return nil
}

// detectCapabilities returns what this user can create, "" if there is no sandbox.
func detectCapabilities() string {
	probe := exec.Command("ip", "link", "set", "lo", "up")
	probe.SysProcAttr = namespaces()
	if probe.Run() != nil {
		return ""
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "fsfreeze"} {
		if _, err := exec.LookPath(tool); err != nil || os.Geteuid() != 0 {
			return networkOnly
		}
	}
	return networkAndDisks
}

// namespaces returns the attributes of the sandbox process. A user other than root
// becomes root in a user namespace, which suffices to create networks.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// reexec runs this binary with its arguments in new namespaces.
func reexec(capabilities string) int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), sandboxEnv+"="+capabilities)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = namespaces()
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return 1
	}
	// On a timeout, go test signals this process; forward the signal to the process whose
	// goroutines are of interest.
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

// prepare sets up the new namespaces: private mounts, the loopback interface and packet
// forwarding between hosts.
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
