// Command local runs a cluster of several nodes on this machine, each a process with
// ports and data of its own, until Ctrl-C. A node that is killed is started again
// after a moment. `make cluster-local` builds and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"platform/deploy/process"
)

const (
	// signalGrace is how much later than a child this process may see a signal that
	// both get.
	signalGrace = 500 * time.Millisecond
	// downTime is how long a node stays away that was killed: long enough to see the
	// others go on without it.
	downTime = 5 * time.Second
)

func main() {
	o := options{out: os.Stdout, downTime: downTime}
	flag.StringVar(&o.server, "server", "bin/platform-server", "server binary")
	flag.IntVar(&o.nodes, "nodes", 3, "number of nodes")
	flag.StringVar(&o.dir, "dir", "", "directory of data and logs, kept at the end (default: a temporary one, removed at the end)")
	flag.IntVar(&o.ingressPort, "ingress-port", 8080, "port to call services on, of the first node; the others have those that follow")
	flag.IntVar(&o.adminPort, "admin-port", 9070, "port of the admin API of the first node")
	flag.IntVar(&o.nodePort, "node-port", 5122, "port for other nodes, of the first node")
	flag.Parse()

	// A terminal that is closed (SIGHUP) must not leave nodes behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "cluster-local:", err)
		os.Exit(1)
	}
}

// options is what the command line says.
type options struct {
	server                           string
	nodes                            int
	dir                              string
	ingressPort, adminPort, nodePort int
	downTime                         time.Duration
	out                              io.Writer
}

// run starts the nodes, says what can be done with them and waits for ctx. All of
// them have ended when it returns.
func run(ctx context.Context, o options) error {
	if o.nodes < 1 || o.nodes > 9 {
		return fmt.Errorf("-nodes is 1 to 9, not %d", o.nodes)
	}
	if err := o.checkPorts(); err != nil {
		return err
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "platform-cluster-")
		if err != nil {
			return err
		}
		o.dir = dir
		defer os.RemoveAll(dir)
	} else if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel() // before Wait
	nodes := make([]*node, o.nodes)
	for i := range nodes {
		n, err := o.start(i + 1)
		if err != nil {
			return err
		}
		nodes[i] = n
		wg.Go(func() { n.keep(ctx, o) })
	}
	begin := time.Now()
	for _, n := range nodes {
		if err := n.await(ctx, o); err != nil {
			return err
		}
	}
	o.show(nodes, time.Since(begin))
	<-ctx.Done()
	fmt.Fprintln(o.out, "\nStopping.")
	return nil
}

// node is one member of the cluster.
type node struct {
	number int

	mu      sync.Mutex // covers process
	process *process.Process
}

func (n *node) current() *process.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// start starts the first process of a node.
func (o options) start(number int) (*node, error) {
	p, err := o.launch(number)
	return &node{number: number, process: p}, err
}

// launch starts a process of a node.
func (o options) launch(number int) (*process.Process, error) {
	name := fmt.Sprintf("n%d", number)
	return process.Start("node "+name, filepath.Join(o.dir, name+".log"), o.env(number), o.server,
		"--node-name", name, "--base-dir", filepath.Join(o.dir, "data"), "--bind-ip", "127.0.0.1")
}

// await waits until the node is ready.
func (n *node) await(ctx context.Context, o options) error {
	return n.current().Await(ctx, o.admin(n.number)+"/health")
}

// keep starts the node again whenever it ends, until ctx ends; then it stops it.
func (n *node) keep(ctx context.Context, o options) {
	for {
		p := n.current()
		select {
		case <-ctx.Done():
			p.Stop()
			return
		case <-p.Ended():
		}
		// A terminal sends Ctrl-C to all processes at once.
		if !wait(ctx, signalGrace) {
			return
		}
		fmt.Fprintf(o.out, "%s ended, it starts again in %s\n", p.Name(), o.downTime)
		if !wait(ctx, o.downTime) {
			return
		}
		next, err := o.launch(n.number)
		if err != nil {
			fmt.Fprintln(o.out, err)
			return
		}
		n.mu.Lock()
		n.process = next
		n.mu.Unlock()
		fmt.Fprintf(o.out, "%s runs again, pid %d\n", next.Name(), next.PID())
	}
}

// wait waits; false if ctx ended meanwhile.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
