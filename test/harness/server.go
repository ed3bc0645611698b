package harness

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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

const (
	// startTimeout limits how long a process may take to become ready.
	startTimeout = 2 * time.Minute
	// stopTimeout limits how long a server may take to exit after SIGTERM: the default of its
	// shutdown timeout is a minute.
	stopTimeout = 75 * time.Second
)

// ServerOptions overrides a target's defaults.
type ServerOptions struct {
	Env    map[string]string     // configuration, without the target's prefix
	Dir    string                // log directory; must exist
	Data   string                // data directory, "" for Dir/data
	Name   string                // node name, "" for n1
	Host   string                // address to listen on, "" for 127.0.0.1
	Ports  []int                 // ingress, admin and node port; nil for free ones
	Binary string                // path of the server, "" for the target's
	Start  func(*exec.Cmd) error // starts the process, nil for cmd.Start
	// IngressCA verifies the certificate of the ingress; nil: it has none.
	IngressCA *x509.CertPool
}

// complete sets the defaults of empty fields.
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
	binary  string            // overrides opts.Binary unless ""
	env     map[string]string // added to opts.Env
}

// StartServer starts a server of the target and waits until it is healthy.
func StartServer(ctx context.Context, target Target, opts ServerOptions) (*Server, error) {
	s, err := NewServer(target, opts)
	if err != nil {
		return nil, err
	}
	return s, s.Restart(ctx)
}

// NewServer returns a server of the target without starting it. It builds the binary if
// necessary.
func NewServer(target Target, opts ServerOptions) (*Server, error) {
	if err := opts.complete(target); err != nil {
		return nil, err
	}
	s := &Server{Target: target, opts: opts}
	s.Client = NewClient(s.url(0), target.Prefix)
	s.Client.admin = s.url(1)
	if opts.IngressCA != nil {
		s.Client.base = "https://" + s.address(0)
		s.Client.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: opts.IngressCA}
	}
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

// url returns the base URL of a port.
func (s *Server) url(port int) string { return "http://" + s.address(port) }

func (s *Server) address(port int) string {
	return net.JoinHostPort(s.opts.Host, strconv.Itoa(s.opts.Ports[port]))
}

// reachable reports whether the server listens on an address that needs a token by default.
func (s *Server) reachable() bool {
	ip := net.ParseIP(s.opts.Host)
	return ip != nil && !ip.IsLoopback()
}

// Name returns the node's name.
func (s *Server) Name() string { return s.opts.Name }

// Data returns the data directory.
func (s *Server) Data() string { return s.opts.Data }

// NodeAddress returns the host and port for traffic between nodes.
func (s *Server) NodeAddress() string { return s.address(2) }

// Admin returns the base address of the admin API.
func (s *Server) Admin() string { return s.Client.admin }

// Use makes the next start run another binary with additional configuration; "" restores
// the default binary.
func (s *Server) Use(binary string, env map[string]string) {
	s.binary, s.env = binary, env
}

// Restart starts the process on the same directory and ports and waits until it is
// healthy. The previous process must have exited.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.awaitHealthy(ctx)
}

// Launch starts the process without waiting until it is healthy.
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
	if s.reachable() && s.binary == "" && s.Target.EnvPrefix == "PLATFORM_" {
		env["SECURITY__MODE"] = "open" // tests do not log in; previous releases do not know the key
	}
	cmd := exec.Command(cmp.Or(s.binary, s.opts.Binary), args...)
	cmd.Env = s.Target.environment(env, s.replace)
	cmd.Dir = s.opts.Dir
	var err error
	s.Process, err = startProcess(s.Target.Name+" "+s.opts.Name, cmd, s.logPath(), s.opts.Start)
	return err
}

// logPath returns the log file, which all starts share.
func (s *Server) logPath() string { return filepath.Join(s.opts.Dir, "server.log") }

// awaitHealthy polls the health routes of both ports.
func (s *Server) awaitHealthy(ctx context.Context) error {
	return awaitReady(ctx, s.Process, s.Healthy)
}

// Healthy checks the health routes of both ports once.
func (s *Server) Healthy(ctx context.Context) error {
	return errors.Join(probe(ctx, http.DefaultClient, s.Client.admin+"/health"), probe(ctx, s.Client.http, s.Client.base+"/"+s.Target.Prefix+"/health"))
}

// Kill kills the process with SIGKILL.
func (s *Server) Kill() { s.Process.Kill() }

// Stop stops the process with SIGTERM and closes the client's connections.
func (s *Server) Stop() error {
	s.Client.Close()
	return s.Process.Terminate(stopTimeout)
}

// Register registers the service endpoint at uri. With http11, the server uses HTTP/1.1,
// which supports request-response mode only.
func (s *Server) Register(ctx context.Context, uri string, http11 bool) error {
	body := fmt.Sprintf(`{"uri":%q,"use_http_11":%t}`, uri, http11)
	resp, err := s.Client.do(ctx, http.MethodPost, s.Client.admin+"/deployments", []byte(body), "content-type", "application/json")
	if err != nil {
		return fmt.Errorf("register %s: %w", uri, err)
	}
	if resp.Status != http.StatusCreated && resp.Status != http.StatusOK {
		return fmt.Errorf("register %s: %d %s", uri, resp.Status, resp.Body)
	}
	return nil
}

// awaitReady polls ready until it succeeds, the process exits or the timeout expires.
func awaitReady(ctx context.Context, p *Process, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Exited():
			return fmt.Errorf("%s exited before it was ready (%w):\n%s", p.name, p.Err(), p.LogTail(30))
		case <-ctx.Done():
			return fmt.Errorf("%s not ready: %w:\n%s", p.name, errors.Join(err, ctx.Err()), p.LogTail(30))
		case <-tick.C:
		}
	}
}

// probe returns an error unless GET url returns status 200.
func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
