package harness

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// ServiceOptions tells how a service endpoint is started. The process finds its
// port in the environment variable PORT.
type ServiceOptions struct {
	Name    string
	Command []string
	Env     map[string]string
	Dir     string // of the log
	WorkDir string // the process' working directory, "" for this one's
}

// Service is a running service endpoint. It keeps its port over restarts.
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
	s := &Service{opts: opts, addr: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	return s, s.Restart(ctx)
}

// URI returns the address to register.
func (s *Service) URI() string { return "http://" + s.addr }

// Kill ends the process with SIGKILL.
func (s *Service) Kill() { s.Process.Kill() }

// Restart starts the process on the same port. The former one must be gone.
func (s *Service) Restart(ctx context.Context) error {
	cmd := exec.Command(s.opts.Command[0], s.opts.Command[1:]...)
	_, port, _ := net.SplitHostPort(s.addr)
	cmd.Env = append(os.Environ(), "PORT="+port)
	for k, v := range s.opts.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Dir = s.opts.WorkDir
	var err error
	s.Process, err = startProcess(s.opts.Name, cmd, filepath.Join(s.opts.Dir, s.opts.Name+".log"))
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
