package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Hub is the address of the test process as the hosts see it. All addresses are in 198.18.0.0/15, which is
// reserved for tests of networks (RFC 2544).
const Hub = "198.18.0.1"

// Network is a set of hosts that reach each other and the test process through the
// network namespace of the test.
type Network struct {
	Hosts []*Host

	mu      sync.Mutex // covers blocked
	blocked map[[2]int]bool
}

// Host is a network namespace. Processes started in it see only its interfaces.
type Host struct {
	IP string

	hubLink   string // the hub's end of the veth pair
	namespace *os.File
}

// NewNetwork creates n hosts. A process can have one network at a time.
func NewNetwork(n int) (*Network, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if err := ip("address", "replace", Hub+"/32", "dev", "lo"); err != nil {
		return nil, err
	}
	w := &Network{blocked: map[[2]int]bool{}}
	for i := range n {
		h, err := newHost(i)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.Hosts = append(w.Hosts, h)
	}
	return w, nil
}

func newHost(i int) (*Host, error) {
	namespace, err := newNamespace()
	if err != nil {
		return nil, err
	}
	h := &Host{IP: fmt.Sprintf("198.18.%d.2", i+1), hubLink: fmt.Sprintf("host%d", i+1), namespace: namespace}
	gateway := fmt.Sprintf("198.18.%d.1", i+1)
	// By descriptor, since the namespace has no name.
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), namespace.Fd())
	err = errors.Join(
		ip("link", "add", h.hubLink, "type", "veth", "peer", "name", "eth0", "netns", path),
		ip("address", "add", gateway+"/24", "dev", h.hubLink),
		ip("link", "set", h.hubLink, "up"),
		h.ip("link", "set", "lo", "up"),
		h.ip("address", "add", h.IP+"/24", "dev", "eth0"),
		h.ip("link", "set", "eth0", "up"),
		h.ip("route", "add", "default", "via", gateway),
	)
	if err != nil {
		namespace.Close()
		return nil, err
	}
	return h, nil
}

// newNamespace creates a network namespace, which exists as long as the file is open.
func newNamespace() (*os.File, error) {
	var file *os.File
	err := inNamespace(nil, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("create network namespace: %w", err)
		}
		var err error
		file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return file, err
}

// inNamespace calls f on a thread in the namespace (nil: the current one) and restores
// the thread's namespace.
func inNamespace(namespace *os.File, f func() error) error {
	runtime.LockOSThread() // a thread whose namespace cannot be restored stays locked
	original, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer original.Close()
	if namespace != nil {
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
	}
	err = f()
	if restoreErr := unix.Setns(int(original.Fd()), unix.CLONE_NEWNET); restoreErr != nil {
		return errors.Join(err, fmt.Errorf("leave network namespace: %w", restoreErr))
	}
	runtime.UnlockOSThread()
	return err
}

// Start starts a process on the host.
func (h *Host) Start(cmd *exec.Cmd) error { return inNamespace(h.namespace, cmd.Start) }

// ip runs the ip command on the host.
func (h *Host) ip(args ...string) error {
	return inNamespace(h.namespace, func() error { return ip(args...) })
}

// Reaches reports whether a TCP connection from this host to address is accepted or
// refused within timeout.
func (h *Host) Reaches(address string, timeout time.Duration) bool {
	host, port, err := splitAddress(address)
	if err != nil {
		return false
	}
	reached := false
	_ = inNamespace(h.namespace, func() error {
		reached = probeTCP(host, port, timeout)
		return nil
	})
	return reached
}

// Block silently drops packets from host from to host to.
func (w *Network) Block(from, to int) error { return w.setBlocked(from, to, true) }

// Unblock reverts Block.
func (w *Network) Unblock(from, to int) error { return w.setBlocked(from, to, false) }

func (w *Network) setBlocked(from, to int, block bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	edge := [2]int{from, to}
	if w.blocked[edge] == block {
		return nil
	}
	action := "del"
	if block {
		action = "add"
	}
	// The hub routes between hosts; a blackhole rule drops packets there.
	preference := strconv.Itoa(1000 + 100*from + to)
	err := ip("rule", action, "preference", preference, "from", w.Hosts[from].IP, "to", w.Hosts[to].IP, "blackhole")
	if err == nil {
		w.blocked[edge] = block
	}
	return err
}

// Unplug disconnects a host from all others and the test process.
func (w *Network) Unplug(i int) error { return ip("link", "set", w.Hosts[i].hubLink, "down") }

// Plug reverts Unplug.
func (w *Network) Plug(i int) error { return ip("link", "set", w.Hosts[i].hubLink, "up") }

// Heal reverts all Block and Unplug calls.
func (w *Network) Heal() error {
	var errs []error
	for from := range w.Hosts {
		errs = append(errs, w.Plug(from))
		for to := range w.Hosts {
			errs = append(errs, w.Unblock(from, to))
		}
	}
	return errors.Join(errs...)
}

// Close removes the hosts. Their processes must have exited.
func (w *Network) Close() error {
	var errs []error
	errs = append(errs, w.Heal())
	for _, h := range w.Hosts {
		errs = append(errs, ip("link", "del", h.hubLink), h.namespace.Close())
	}
	return errors.Join(errs...)
}
