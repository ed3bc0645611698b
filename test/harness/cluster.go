package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// ClusterOptions configures a cluster.
type ClusterOptions struct {
	Nodes     int
	Env       map[string]string     // configuration of every node, keys without the target's prefix
	Dir       string                // of logs and data; must exist
	Binary    string                // path of the server, "" for the target's
	Placement func(i int) Placement // of node i, starting at 0; nil: all on 127.0.0.1
}

// Placement determines where a node runs.
type Placement struct {
	Host  string                // address to listen on, "" for 127.0.0.1
	Ports []int                 // ingress, admin and node port; nil for free ones
	Data  string                // parent of the data directory, "" for a directory below ClusterOptions.Dir
	Start func(*exec.Cmd) error // starts the process, nil for cmd.Start
}

// Cluster is a set of servers that form a cluster. A cluster of one node has the
// configuration of a single-node server.
type Cluster struct {
	Nodes []*Server

	target Target
	opts   ClusterOptions
}

// NewCluster returns a cluster of the nodes n1, n2, … without starting them.
func NewCluster(target Target, opts ClusterOptions) (*Cluster, error) {
	c := &Cluster{target: target, opts: opts}
	placements := make([]Placement, opts.Nodes)
	seeds := make([]string, opts.Nodes)
	for i := range placements {
		if opts.Placement != nil {
			placements[i] = opts.Placement(i)
		}
		if placements[i].Ports == nil {
			ports, err := FreePorts(3)
			if err != nil {
				return nil, err
			}
			placements[i].Ports = ports
		}
		seeds[i] = address(placements[i])
	}
	env, err := c.environment(seeds)
	if err != nil {
		return nil, err
	}
	for i, placement := range placements {
		node, err := c.newNode(i, placement, env)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, node)
	}
	return c, nil
}

func address(p Placement) string {
	host := p.Host
	if host == "" {
		host = "127.0.0.1"
	}
	return host + ":" + strconv.Itoa(p.Ports[2])
}

// environment returns the configuration shared by all nodes, with the seed addresses.
func (c *Cluster) environment(seeds []string) (map[string]string, error) {
	env := map[string]string{}
	if n := c.opts.Nodes; n > 1 {
		list, err := json.Marshal(seeds)
		if err != nil {
			return nil, err
		}
		env["CLUSTER_NAME"] = "test-" + strconv.FormatUint(rand.Uint64(), 36)
		env["BOOTSTRAP_EXPECT"] = strconv.Itoa(n)
		env["METADATA_CLIENT__ADDRESSES"] = string(list)
		env["DEFAULT_REPLICATION"] = strconv.Itoa(min(3, n))
	}
	for k, v := range c.opts.Env {
		env[k] = v
	}
	return env, nil
}

func (c *Cluster) newNode(i int, placement Placement, env map[string]string) (*Server, error) {
	name := fmt.Sprintf("n%d", i+1)
	dir := filepath.Join(c.opts.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	data := dir
	if placement.Data != "" {
		data = placement.Data
	}
	return NewServer(c.target, ServerOptions{
		Name: name, Env: env, Dir: dir, Data: filepath.Join(data, "data"), Binary: c.opts.Binary,
		Host: placement.Host, Ports: placement.Ports, Start: placement.Start,
	})
}

// Start starts all nodes concurrently and waits until each is healthy.
func (c *Cluster) Start(ctx context.Context) error {
	return c.each(func(n *Server) error { return n.Restart(ctx) })
}

// Launch starts all nodes concurrently without waiting until they are healthy.
func (c *Cluster) Launch() error { return c.each((*Server).Launch) }

// Stop stops all started nodes with SIGTERM.
func (c *Cluster) Stop() error {
	return c.each(func(n *Server) error {
		if n.Process == nil {
			return nil
		}
		_ = n.Process.Signal(syscall.SIGCONT) // it may be suspended
		return n.Stop()
	})
}

// Kill stops all started nodes with SIGKILL.
func (c *Cluster) Kill() {
	_ = c.each(func(n *Server) error {
		if n.Process != nil {
			n.Kill()
		}
		return nil
	})
}

// AwaitHealthy waits until both health routes of every node succeed.
func (c *Cluster) AwaitHealthy(ctx context.Context) error {
	return c.each(func(n *Server) error { return n.awaitHealthy(ctx) })
}

// each calls f for all nodes concurrently and joins the errors.
func (c *Cluster) each(f func(*Server) error) error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		wg.Go(func() {
			if err := f(n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.Name(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Wipe removes the data of a node. The process must have exited.
func (s *Server) Wipe() error {
	entries, err := os.ReadDir(s.opts.Data)
	if err != nil {
		return fmt.Errorf("wipe %s: %w", s.opts.Name, err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(s.opts.Data, e.Name())); err != nil {
			return fmt.Errorf("wipe %s: %w", s.opts.Name, err)
		}
	}
	return nil
}
