package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

const (
	serverProgram = "platform-server"
	// startTimeout bounds how long a server may take until it answers.
	startTimeout = 30 * time.Second
	// stopTimeout is what a stopping server has before it is killed.
	stopTimeout = 20 * time.Second
)

// devServer is a temporary server.
type devServer struct {
	bindIP               string
	randomPorts          bool
	retain               bool
	node, ingress, admin int // ports
	dir                  string
	program              string
}

func (a *app) dev() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dev",
		Aliases: []string{"up"},
		Short:   "Run a temporary server until Ctrl-C",
		Long: `Runs a server in the foreground, with its data in a temporary directory that is
deleted when it ends.`,
		Args:    cobra.NoArgs,
		Example: "  platform dev\n  platform dev --use-random-ports --retain",
	}
	var s devServer
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVarP(&s.randomPorts, "use-random-ports", "r", false, "take free ports instead of the usual ones")
	flags.BoolVar(&s.retain, "retain", false, "keep the data")
	flags.StringVar(&s.bindIP, "bind-ip", "127.0.0.1", "address to listen on; :: is every address")
	cmd.RunE = run(func(ctx context.Context, _ []string) error { return a.runDev(ctx, s) })
	return cmd
}

func (a *app) runDev(ctx context.Context, s devServer) (err error) {
	if s.program, err = findServer(); err != nil {
		return err
	}
	s.node, s.ingress, s.admin = 5122, 8080, 9070
	if s.randomPorts {
		if err := freePorts(s.bindIP, &s.node, &s.ingress, &s.admin); err != nil {
			return err
		}
	} else if err := s.checkPorts(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "platform-dev-"); err != nil {
		return fmt.Errorf("make a directory for the data: %w", err)
	}
	defer func() { err = errors.Join(err, a.cleanUp(s)) }()
	return a.serve(ctx, s)
}

// cleanUp deletes the data, unless it is to be kept.
func (a *app) cleanUp(s devServer) error {
	if s.retain {
		a.say("The data is kept in %s", s.dir)
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("delete the data: %w", err)
	}
	return nil
}

// findServer looks for the server beside this program, then in PATH.
func findServer() (string, error) {
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		beside := filepath.Join(filepath.Dir(self), serverProgram)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	program, err := exec.LookPath(serverProgram)
	if err != nil {
		return "", &hintedError{
			errors.New(serverProgram + " is neither beside this program nor in PATH"),
			"Build it with `make build`, or put it beside this program.",
		}
	}
	return program, nil
}

// freePorts asks the system for free ports, all at once so that they differ.
func freePorts(ip string, ports ...*int) error {
	for _, port := range ports {
		listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// checkPorts fails if one of the ports is in use. The process that holds it might
// respond in place of the server that is about to start.
func (s devServer) checkPorts() error {
	for _, port := range []struct {
		use    string
		number int
	}{{"ingress", s.ingress}, {"admin API", s.admin}, {"node", s.node}} {
		listener, err := net.Listen("tcp", net.JoinHostPort(s.bindIP, strconv.Itoa(port.number)))
		if err != nil {
			return &hintedError{
				fmt.Errorf("port %d of the %s cannot be used: %w", port.number, port.use, err),
				"If another server runs here, use that one (`platform whoami`) or stop it; --use-random-ports chooses free ports.",
			}
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("close port %d: %w", port.number, err)
		}
	}
	return nil
}

// serve runs the server until ctx ends or it ends by itself.
func (a *app) serve(ctx context.Context, s devServer) error {
	server := &child{Cmd: exec.Command(s.program), ended: make(chan struct{})}
	server.Env = append(os.Environ(),
		"PLATFORM_BASE_DIR="+s.dir, "PLATFORM_NODE_NAME=dev", "PLATFORM_BIND_IP="+s.bindIP,
		"PLATFORM_BIND_PORT="+strconv.Itoa(s.node),
		"PLATFORM_INGRESS__BIND_PORT="+strconv.Itoa(s.ingress),
		"PLATFORM_ADMIN__BIND_PORT="+strconv.Itoa(s.admin),
	)
	server.Stdout, server.Stderr = a.Err, a.Err
	// In a group of its own, the server hears of Ctrl-C from us alone, once.
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.program, err)
	}
	go server.wait()

	ready, stopWaiting := context.WithTimeout(ctx, startTimeout)
	defer stopWaiting()
	probed := make(chan struct{})
	var silent error // read it after probed is closed
	go func() {
		defer close(probed)
		silent = a.awaitHealth(ready, s)
	}()
	select {
	case <-server.ended:
		stopWaiting()
		<-probed
		return serverEnded(server.err)
	case <-probed:
		if silent != nil && ctx.Err() == nil {
			server.stop()
			return fmt.Errorf("the server did not answer within %s: %w", startTimeout, silent)
		}
	}
	if ctx.Err() == nil {
		a.announce(s)
	}
	select {
	case <-server.ended:
		return serverEnded(server.err)
	case <-ctx.Done():
		a.say("Stopping the server")
		server.stop()
		return nil
	}
}

// awaitHealth returns once the admin API answers.
func (a *app) awaitHealth(ctx context.Context, s devServer) error {
	probe := client.New(client.Options{
		AdminURL: s.url(s.admin), IngressURL: s.url(s.ingress),
		ConnectTimeout: time.Second, RequestTimeout: time.Second, Log: a.logger(),
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := probe.Health(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func (s devServer) url(port int) string {
	host := s.bindIP
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port)) + "/"
}

func (a *app) announce(s devServer) {
	a.print.Heading("Temporary server")
	a.print.Fields("  ",
		term.Field{Name: "Ingress", Value: s.url(s.ingress)},
		term.Field{Name: "Admin API", Value: s.url(s.admin)},
		term.Field{Name: "Data", Value: s.dir},
	)
	prefix := ""
	if s.randomPorts {
		prefix = fmt.Sprintf("export PLATFORM_ADMIN_URL=%s PLATFORM_INGRESS_URL=%s\n  ", s.url(s.admin), s.url(s.ingress))
	}
	a.print.Printf("\nNext, in another terminal:\n  %splatform deployments register localhost:9080\n\nCtrl-C stops the server.\n", prefix)
}

func serverEnded(err error) error {
	if err == nil {
		return errors.New("the server ended by itself")
	}
	return &hintedError{fmt.Errorf("the server ended by itself: %w", err), "Its messages stand above. If a port is in use, try --use-random-ports."}
}

// child is a running server.
type child struct {
	*exec.Cmd
	ended chan struct{} // closed at its end
	err   error         // how it ended; read it after ended is closed
}

func (c *child) wait() {
	c.err = c.Wait()
	close(c.ended)
}

// stop asks the server to end and waits for it; one that does not is killed.
func (c *child) stop() {
	_ = c.Process.Signal(syscall.SIGTERM) // it may just have ended
	patience := time.NewTimer(stopTimeout)
	defer patience.Stop()
	select {
	case <-c.ended:
	case <-patience.C:
		_ = c.Process.Kill()
		<-c.ended
	}
}
