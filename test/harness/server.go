package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// startLimit is how long a process may take until it answers.
const startLimit = 60 * time.Second

// ServerOptions tells what differs from a target's defaults.
type ServerOptions struct {
	Env map[string]string // configuration, keys without the target's prefix
	Dir string            // data directory and log; must exist
}

// Server is one server process with its data directory.
type Server struct {
	Target  Target
	Client  *Client // of the ingress
	Process *Process

	binary  string
	opts    ServerOptions
	admin   string
	replace *strings.Replacer
}

// StartServer starts a server of the target and waits until it is healthy.
func StartServer(ctx context.Context, target Target, opts ServerOptions) (*Server, error) {
	binary, err := target.binary()
	if err != nil {
		return nil, err
	}
	ports, err := FreePorts(3)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Target: target,
		Client: NewClient(fmt.Sprintf("http://127.0.0.1:%d", ports[0]), target.Prefix),
		binary: binary,
		opts:   opts,
		admin:  fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		replace: strings.NewReplacer(
			"{data}", filepath.Join(opts.Dir, "data"),
			"{ingress_port}", strconv.Itoa(ports[0]),
			"{admin_port}", strconv.Itoa(ports[1]),
			"{node_port}", strconv.Itoa(ports[2]),
		),
	}
	return s, s.Restart(ctx)
}

// Admin returns the base address of the admin API.
func (s *Server) Admin() string { return s.admin }

// Restart starts the process on the same directory and ports and waits until it
// is healthy. The former process must be gone.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.awaitHealthy(ctx)
}

// Launch starts the process and does not wait for it to answer.
func (s *Server) Launch() error {
	args := make([]string, len(s.Target.Args))
	for i, a := range s.Target.Args {
		args[i] = s.replace.Replace(a)
	}
	cmd := exec.Command(s.binary, args...)
	cmd.Env = s.Target.environment(s.opts.Env, s.replace)
	cmd.Dir = s.opts.Dir
	var err error
	s.Process, err = startProcess(s.Target.Name, cmd, filepath.Join(s.opts.Dir, "server.log"))
	return err
}

// awaitHealthy polls the health routes of both ports.
func (s *Server) awaitHealthy(ctx context.Context) error {
	health := []string{s.admin + "/health", s.Client.base + "/" + s.Target.Prefix + "/health"}
	return awaitReady(ctx, s.Process, func(ctx context.Context) error {
		for _, url := range health {
			if err := probe(ctx, url); err != nil {
				return err
			}
		}
		return nil
	})
}

// Kill ends the process with SIGKILL.
func (s *Server) Kill() { s.Process.Kill() }

// Stop ends the process with SIGTERM and frees the client's connections.
func (s *Server) Stop() error {
	s.Client.Close()
	return s.Process.Terminate(20 * time.Second)
}

// Register registers the service endpoint at uri. HTTP/1.1 endpoints speak
// request-response mode only.
func (s *Server) Register(ctx context.Context, uri string, http11 bool) error {
	body := fmt.Sprintf(`{"uri":%q,"use_http_11":%t}`, uri, http11)
	answer, err := s.Client.do(ctx, http.MethodPost, s.admin+"/deployments", []byte(body), "content-type", "application/json")
	if err != nil {
		return fmt.Errorf("register %s: %w", uri, err)
	}
	if answer.Status != http.StatusCreated && answer.Status != http.StatusOK {
		return fmt.Errorf("register %s: %d %s", uri, answer.Status, answer.Body)
	}
	return nil
}

// awaitReady polls ready until it succeeds, the process ends or time is up.
func awaitReady(ctx context.Context, p *Process, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Ended():
			return fmt.Errorf("%s ended before it was ready (%w):\n%s", p.name, p.Err(), p.LogTail(30))
		case <-ctx.Done():
			return fmt.Errorf("%s not ready: %w:\n%s", p.name, errors.Join(err, ctx.Err()), p.LogTail(30))
		case <-tick.C:
		}
	}
}

// probe succeeds if a GET of url answers 200.
func probe(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
