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

// Hub is the address of the test process as the hosts see it.
const Hub = "10.90.0.1"

// Network is some hosts that reach each other and the test process through the
// test's own network namespace.
type Network struct {
	Hosts []*Host

	mu      sync.Mutex // covers blocked
	blocked map[[2]int]bool
}

// Host is one network namespace. Processes started there see nothing else.
type Host struct {
	IP string

	link      string // the hub's end of the cable
	namespace *os.File
}

// NewNetwork makes n hosts. At most one network exists per process at a time.
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
	h := &Host{IP: fmt.Sprintf("10.91.%d.2", i+1), link: fmt.Sprintf("host%d", i+1), namespace: namespace}
	gateway := fmt.Sprintf("10.91.%d.1", i+1)
	// By its descriptor, since the namespace has no name.
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), namespace.Fd())
	err = errors.Join(
		ip("link", "add", h.link, "type", "veth", "peer", "name", "eth0", "netns", path),
		ip("address", "add", gateway+"/24", "dev", h.link),
		ip("link", "set", h.link, "up"),
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

// newNamespace makes a network namespace, which lives as long as its file is open.
func newNamespace() (*os.File, error) {
	var made *os.File
	err := inNamespace(nil, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
		var err error
		made, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return made, err
}

// inNamespace calls do on a thread that is in the namespace (nil: the present one)
// and brings the thread back.
func inNamespace(namespace *os.File, do func() error) error {
	runtime.LockOSThread() // until it is back; a thread that stays astray stays locked
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	if namespace != nil {
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
	}
	err = do()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, fmt.Errorf("leave network namespace: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// Start starts a process on the host.
func (h *Host) Start(cmd *exec.Cmd) error { return inNamespace(h.namespace, cmd.Start) }

// ip runs the tool on the host.
func (h *Host) ip(args ...string) error {
	return inNamespace(h.namespace, func() error { return ip(args...) })
}

// Reaches reports whether a TCP connection from this host to address is answered,
// be it by a refusal, within limit.
func (h *Host) Reaches(address string, limit time.Duration) bool {
	host, port, err := splitAddress(address)
	if err != nil {
		return false
	}
	reached := false
	_ = inNamespace(h.namespace, func() error {
		reached = knock(host, port, limit)
		return nil
	})
	return reached
}

// Block drops what host from sends to host to, silently.
func (w *Network) Block(from, to int) error { return w.rule(from, to, true) }

// Unblock ends Block.
func (w *Network) Unblock(from, to int) error { return w.rule(from, to, false) }

func (w *Network) rule(from, to int, block bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	edge := [2]int{from, to}
	if w.blocked[edge] == block {
		return nil
	}
	verb := "del"
	if block {
		verb = "add"
	}
	// The hub routes between hosts, and a rule that says blackhole drops there.
	preference := strconv.Itoa(1000 + 100*from + to)
	err := ip("rule", verb, "preference", preference, "from", w.Hosts[from].IP, "to", w.Hosts[to].IP, "blackhole")
	if err == nil {
		w.blocked[edge] = block
	}
	return err
}

// Unplug cuts a host off from everybody, the test process included.
func (w *Network) Unplug(i int) error { return ip("link", "set", w.Hosts[i].link, "down") }

// Plug ends Unplug.
func (w *Network) Plug(i int) error { return ip("link", "set", w.Hosts[i].link, "up") }

// Heal ends everything that was done to the network.
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

// Close removes the hosts. What runs there must have ended.
func (w *Network) Close() error {
	var errs []error
	errs = append(errs, w.Heal())
	for _, h := range w.Hosts {
		errs = append(errs, ip("link", "del", h.link), h.namespace.Close())
	}
	return errors.Join(errs...)
}
