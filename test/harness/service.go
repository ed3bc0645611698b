package harness

import (
	"cmp"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// ServiceOptions configures a service endpoint. The process reads its address from the
// environment variables HOST and PORT.
type ServiceOptions struct {
	Name    string
	Command []string
	Env     map[string]string
	Dir     string // log directory
	WorkDir string // working directory, "" for that of the test
	Host    string // address to listen on, "" for 127.0.0.1
}

// Service is a running service endpoint. It keeps its port across restarts.
type Service struct {
	Process *Process

	opts ServiceOptions
	addr string
}

// StartService starts an endpoint and waits until it accepts connections.
func StartService(ctx context.Context, opts ServiceOptions) (*Service, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	opts.Host = cmp.Or(opts.Host, "127.0.0.1")
	s := &Service{opts: opts, addr: net.JoinHostPort(opts.Host, strconv.Itoa(ports[0]))}
	return s, s.Restart(ctx)
}

// URI returns the endpoint's address for registration.
func (s *Service) URI() string { return "http://" + s.addr }

// Kill kills the process with SIGKILL.
func (s *Service) Kill() { s.Process.Kill() }

// Restart starts the process on the same port. The previous process must have exited.
func (s *Service) Restart(ctx context.Context) error {
	cmd := exec.Command(s.opts.Command[0], s.opts.Command[1:]...)
	_, port, _ := net.SplitHostPort(s.addr)
	cmd.Env = append(os.Environ(), "HOST="+s.opts.Host, "PORT="+port)
	for k, v := range s.opts.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Dir = s.opts.WorkDir
	var err error
	s.Process, err = startProcess(s.opts.Name, cmd, filepath.Join(s.opts.Dir, s.opts.Name+".log"), (*exec.Cmd).Start)
	if err != nil {
		return err
	}
	return awaitReady(ctx, s.Process, func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", s.addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
