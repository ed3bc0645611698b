package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"platform/cmd/platform/internal/term"
)

// MostNodes is the largest number of nodes.
const MostNodes = 9

const mostPort = 1<<16 - 1

// Options are the processes to run and their settings.
type Options struct {
	Server string   // program
	Self   string   // command that runs this program, in the suggestions
	Sample []string // command of the sample service, followed by its address; nil: none
	Once   bool     // return after the sample's first response

	Nodes       int    // 1 to MostNodes
	BindIP      string // address that the nodes listen on
	Ports       Ports  // of the first node; the others have the numbers after them
	RandomPorts bool   // choose free ports instead
	SamplePort  int

	Dir    string // data and logs, kept; "": a temporary directory
	Retain bool   // keep the temporary directory

	// DownTime is the delay before a node that ended is restarted, if there are several: long
	// enough to see that the others continue without it.
	DownTime time.Duration

	// OpenUI opens the address of the web UI in a browser once the nodes respond; nil: not opened.
	OpenUI func(ctx context.Context, address string) error

	Print *term.Printer                    // prints the running processes
	Say   func(format string, args ...any) // prints events
	Err   io.Writer                        // output of the server, if there is one node and no sample
}

// Ports are the ports of a node.
type Ports struct{ Ingress, Admin, Node int }

// HintedError is an error with a hint on what to do.
type HintedError struct {
	Err  error
	Hint string
}

func (e *HintedError) Error() string { return e.Err.Error() }
func (e *HintedError) Unwrap() error { return e.Err }

// Check returns why options are invalid, as a message for users; "" if they are valid.
func (o *Options) Check() string {
	if o.Nodes < 1 || o.Nodes > MostNodes {
		return fmt.Sprintf("--nodes is 1 to %d, not %d", MostNodes, o.Nodes)
	}
	if ip := net.ParseIP(o.BindIP); o.Nodes > 1 && ip != nil && ip.IsUnspecified() {
		return fmt.Sprintf("--bind-ip %s stands for all addresses; the nodes of a cluster need a specific one, such as 127.0.0.1", o.BindIP)
	}
	if o.RandomPorts {
		return ""
	}
	last := mostPort - o.Nodes + 1
	for _, p := range []struct {
		flag       string
		port, most int
	}{{"--ingress-port", o.Ports.Ingress, last}, {"--admin-port", o.Ports.Admin, last}, {"--node-port", o.Ports.Node, last}, {"--sample-port", o.SamplePort, mostPort}} {
		if p.port < 1 || p.port > p.most {
			return fmt.Sprintf("%s is 1 to %d, not %d; --use-random-ports chooses free ports", p.flag, p.most, p.port)
		}
	}
	return ""
}

// Run runs the nodes, with options that Check accepts, until ctx ends, or until a single node or the sample ends by itself.
// When it returns, all processes have ended and temporary data is deleted.
func Run(ctx context.Context, o Options) (err error) {
	nodes, err := o.newNodes()
	if err != nil {
		return err
	}
	if o.Dir != "" {
		o.Retain = true
		err = os.MkdirAll(o.Dir, 0o700)
	} else {
		o.Dir, err = os.MkdirTemp("", "platform-dev-")
	}
	if err != nil {
		return fmt.Errorf("create a directory for the data: %w", err)
	}
	defer func() { err = errors.Join(err, o.cleanUp()) }()
	r := &running{o: o, nodes: nodes, failed: make(chan error, len(nodes)+1), token: adminToken(o.BindIP)}
	return r.run(ctx)
}

// cleanUp deletes the data unless it is retained.
func (o *Options) cleanUp() error {
	if o.Retain {
		o.Say("The data is kept in %s", o.Dir)
		return nil
	}
	if err := os.RemoveAll(o.Dir); err != nil {
		return fmt.Errorf("delete the data: %w", err)
	}
	return nil
}

// alone reports whether there is only one process, whose output is shown directly.
func (o *Options) alone() bool { return o.Nodes == 1 && o.Sample == nil }

// running is the state of a call of Run.
type running struct {
	o      Options
	nodes  []*node
	failed chan error  // gets an error of each process that ended and is not restarted
	up     atomic.Bool // all nodes have responded
	token  string      // of the administrator; empty if the nodes require none
}

func (r *running) run(ctx context.Context) error {
	// On return the processes are stopped, which is announced first.
	processes, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop() // before Wait
	begin := time.Now()
	for _, n := range r.nodes {
		p, err := r.launch(n)
		if err != nil {
			return err
		}
		n.set(p)
		wg.Go(func() { r.supervise(processes, n) })
	}
	for _, n := range r.nodes {
		if err := n.current().Await(ctx, n.admin("/health")); err != nil {
			return r.outcome(ctx, err)
		}
	}
	r.up.Store(true)
	if r.o.Sample == nil {
		r.announce(time.Since(begin))
	} else if err := r.showSample(ctx, processes, &wg); err != nil || r.o.Once {
		return r.outcome(ctx, err)
	}
	if r.o.OpenUI != nil {
		wg.Go(func() { r.openUI(processes) }) // the command may run until the browser is closed
	}
	select {
	case <-ctx.Done():
		r.o.Say("%s", r.stopping())
		return nil
	case err := <-r.failed:
		return err
	}
}

func (r *running) openUI(ctx context.Context) {
	if err := r.o.OpenUI(ctx, r.webUI(r.nodes[0])); err != nil && ctx.Err() == nil {
		r.o.Say("The web UI could not be opened in a browser: %v. Open the address above yourself.", err)
	}
}

// outcome returns nil for an error that only reports the end of ctx.
func (r *running) outcome(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	r.o.Say("%s", r.stopping())
	return nil
}

func (r *running) stopping() string {
	switch {
	case r.o.Nodes > 1:
		return "Stopping the nodes"
	case r.o.Sample != nil:
		return "Stopping the server and the sample service"
	}
	return "Stopping the server"
}

// exitRemoved is the exit status of a server that was removed from its cluster. It would
// exit again after each restart.
const exitRemoved = 4

// supervise stops a node when ctx ends. In a cluster, a node that ends earlier is restarted,
// unless it was removed.
func (r *running) supervise(ctx context.Context, n *node) {
	for {
		p := n.current()
		select {
		case <-ctx.Done():
			p.Stop()
			return
		case <-p.Ended():
		}
		if r.o.Nodes == 1 || !r.up.Load() {
			r.failed <- p.Failure()
			return
		}
		if p.ExitStatus() == exitRemoved {
			r.o.Say("%s was removed from the cluster and is not restarted; its data in %s is no longer used", p.Name(), filepath.Join(r.o.Dir, n.name))
			return
		}
		r.o.Say("%s ended and will be restarted in %s", p.Name(), r.o.DownTime)
		if !sleep(ctx, r.o.DownTime) {
			return
		}
		next, err := r.launch(n)
		if err != nil {
			r.failed <- err
			return
		}
		n.set(next)
		r.o.Say("Restarted %s, pid %d", next.Name(), next.PID())
	}
}

func (r *running) launch(n *node) (*Process, error) {
	if r.o.alone() {
		return Start("the server", r.o.Err, "", n.env(r), r.o.Server)
	}
	name := "the server"
	if r.o.Nodes > 1 {
		name = "node " + n.name
	}
	return Start(name, nil, filepath.Join(r.o.Dir, n.name+".log"), n.env(r), r.o.Server)
}

// newNodes chooses the ports of all nodes.
func (o *Options) newNodes() ([]*node, error) {
	nodes := make([]*node, o.Nodes)
	for i := range nodes {
		nodes[i] = &node{name: fmt.Sprintf("n%d", i+1), ip: o.BindIP, ports: Ports{o.Ports.Ingress + i, o.Ports.Admin + i, o.Ports.Node + i}}
	}
	if o.Nodes == 1 {
		nodes[0].name = "dev"
	}
	if o.RandomPorts {
		return nodes, o.randomPorts(nodes)
	}
	return nodes, o.checkPorts(nodes)
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
