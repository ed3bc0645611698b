package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
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
	Env    map[string]string     // configuration, keys without the target's prefix
	Dir    string                // of the log; must exist
	Data   string                // data directory, "" for data below Dir
	Name   string                // of the node, "" for n1
	Host   string                // address to listen on, "" for 127.0.0.1
	Ports  []int                 // of ingress, admin and node; nil for free ones
	Binary string                // path of the server, "" for the target's
	Start  func(*exec.Cmd) error // starts the process, nil for cmd.Start
}

// complete fills in what is empty.
func (o *ServerOptions) complete(t Target) (err error) {
	o.Data = cmp.Or(o.Data, filepath.Join(o.Dir, "data"))
	o.Name = cmp.Or(o.Name, "n1")
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	if o.Start == nil {
		o.Start = (*exec.Cmd).Start
	}
	if o.Ports == nil {
		if o.Ports, err = FreePorts(3); err != nil {
			return err
		}
	}
	if o.Binary == "" {
		o.Binary, err = t.binary()
	}
	return err
}

// Server is one server process with its data directory.
type Server struct {
	Target  Target
	Client  *Client // of the ingress
	Process *Process

	opts    ServerOptions
	replace *strings.Replacer
	binary  string            // instead of that of the options, "" for none
	env     map[string]string // beside that of the options
}

// StartServer starts a server of the target and waits until it is healthy.
func StartServer(ctx context.Context, target Target, opts ServerOptions) (*Server, error) {
	s, err := NewServer(target, opts)
	if err != nil {
		return nil, err
	}
	return s, s.Restart(ctx)
}

// NewServer prepares a server of the target, building it if need be, and starts
// nothing yet.
func NewServer(target Target, opts ServerOptions) (*Server, error) {
	if err := opts.complete(target); err != nil {
		return nil, err
	}
	s := &Server{Target: target, opts: opts}
	s.Client = NewClient(s.url(0), target.Prefix)
	s.Client.admin = s.url(1)
	s.replace = strings.NewReplacer(
		"{name}", opts.Name,
		"{host}", opts.Host,
		"{data}", opts.Data,
		"{ingress_port}", strconv.Itoa(opts.Ports[0]),
		"{admin_port}", strconv.Itoa(opts.Ports[1]),
		"{node_port}", strconv.Itoa(opts.Ports[2]),
	)
	return s, nil
}

// url is the base address of one of the ports.
func (s *Server) url(port int) string { return "http://" + s.address(port) }

func (s *Server) address(port int) string {
	return net.JoinHostPort(s.opts.Host, strconv.Itoa(s.opts.Ports[port]))
}

// Name returns the node's name.
func (s *Server) Name() string { return s.opts.Name }

// Data returns the data directory.
func (s *Server) Data() string { return s.opts.Data }

// NodeAddress returns host and port for traffic between nodes.
func (s *Server) NodeAddress() string { return s.address(2) }

// Admin returns the base address of the admin API.
func (s *Server) Admin() string { return s.Client.admin }

// Use makes the next start run another binary, with further configuration beside that
// of ServerOptions.
func (s *Server) Use(binary string, env map[string]string) {
	s.binary, s.env = binary, env
}

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
	env := maps.Clone(s.opts.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, s.env)
	cmd := exec.Command(cmp.Or(s.binary, s.opts.Binary), args...)
	cmd.Env = s.Target.environment(env, s.replace)
	cmd.Dir = s.opts.Dir
	var err error
	s.Process, err = startProcess(s.Target.Name+" "+s.opts.Name, cmd, s.logPath(), s.opts.Start)
	return err
}

// logPath is the file of the process' output, which all its starts share.
func (s *Server) logPath() string { return filepath.Join(s.opts.Dir, "server.log") }

// awaitHealthy polls the health routes of both ports.
func (s *Server) awaitHealthy(ctx context.Context) error {
	return awaitReady(ctx, s.Process, s.Healthy)
}

// Healthy asks the health routes of both ports once.
func (s *Server) Healthy(ctx context.Context) error {
	return errors.Join(probe(ctx, s.Client.admin+"/health"), probe(ctx, s.Client.base+"/"+s.Target.Prefix+"/health"))
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
	answer, err := s.Client.do(ctx, http.MethodPost, s.Client.admin+"/deployments", []byte(body), "content-type", "application/json")
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
