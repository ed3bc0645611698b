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

// ClusterOptions tells how many nodes a cluster has and where they run.
type ClusterOptions struct {
	Nodes  int
	Env    map[string]string // configuration of every node, keys without the target's prefix
	Dir    string            // of logs and data; must exist
	Binary string            // path of the server, "" for the target's
	Place  func(i int) Place // of node i, counted from 0; nil: all on 127.0.0.1
}

// Place is where one node runs.
type Place struct {
	Host  string                // its address, "" for 127.0.0.1
	Ports []int                 // of ingress, admin and node; nil for free ones
	Data  string                // parent of its data directory, "" for a directory below the cluster's
	Start func(*exec.Cmd) error // starts the process there, nil for cmd.Start
}

// Cluster is some servers that make one cluster. With one node it is that server
// alone, configured as a user would who wants only one.
type Cluster struct {
	Nodes []*Server

	target Target
	opts   ClusterOptions
}

// NewCluster prepares the nodes n1, n2, … and starts nothing yet.
func NewCluster(target Target, opts ClusterOptions) (*Cluster, error) {
	c := &Cluster{target: target, opts: opts}
	places := make([]Place, opts.Nodes)
	seeds := make([]string, opts.Nodes)
	for i := range places {
		if opts.Place != nil {
			places[i] = opts.Place(i)
		}
		if places[i].Ports == nil {
			ports, err := FreePorts(3)
			if err != nil {
				return nil, err
			}
			places[i].Ports = ports
		}
		seeds[i] = address(places[i])
	}
	env, err := c.environment(seeds)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		node, err := c.newNode(i, place, env)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, node)
	}
	return c, nil
}

func address(p Place) string {
	host := p.Host
	if host == "" {
		host = "127.0.0.1"
	}
	return host + ":" + strconv.Itoa(p.Ports[2])
}

// environment is the configuration that makes the nodes find each other.
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

func (c *Cluster) newNode(i int, place Place, env map[string]string) (*Server, error) {
	name := fmt.Sprintf("n%d", i+1)
	dir := filepath.Join(c.opts.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	data := dir
	if place.Data != "" {
		data = place.Data
	}
	return NewServer(c.target, ServerOptions{
		Name: name, Env: env, Dir: dir, Data: filepath.Join(data, "data"), Binary: c.opts.Binary,
		Host: place.Host, Ports: place.Ports, Start: place.Start,
	})
}

// Start starts all nodes at once and waits until each is healthy.
func (c *Cluster) Start(ctx context.Context) error {
	return c.each(func(n *Server) error { return n.Restart(ctx) })
}

// Launch starts all nodes at once and does not wait for them.
func (c *Cluster) Launch() error { return c.each((*Server).Launch) }

// Stop ends all nodes that run, with SIGTERM.
func (c *Cluster) Stop() error {
	return c.each(func(n *Server) error {
		if n.Process == nil {
			return nil
		}
		_ = n.Process.Signal(syscall.SIGCONT) // in case that it was stopped
		return n.Stop()
	})
}

// Kill ends all nodes that run, with SIGKILL.
func (c *Cluster) Kill() {
	_ = c.each(func(n *Server) error {
		if n.Process != nil {
			n.Kill()
		}
		return nil
	})
}

// AwaitHealthy waits until every node answers both health routes.
func (c *Cluster) AwaitHealthy(ctx context.Context) error {
	return c.each(func(n *Server) error { return n.awaitHealthy(ctx) })
}

// each does something with all nodes at once.
func (c *Cluster) each(do func(*Server) error) error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		wg.Go(func() {
			if err := do(n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.Name(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Wipe removes the data of a node that does not run.
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
