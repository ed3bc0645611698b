package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second // from the start to the first response
	stopTimeout  = 20 * time.Second // from SIGTERM to SIGKILL
)

// Process is a child process.
type Process struct {
	name  string
	log   string // file with its output, "" if it goes to the terminal
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	err   error         // how it ended; read only after ended
}

// Start runs a program. Its output is appended to the file log or, if that is empty, written
// to out. env is added to the environment. name is used in messages.
func Start(name string, out io.Writer, log string, env []string, program string, args ...string) (*Process, error) {
	p := &Process{name: name, log: log, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// A separate process group receives only our SIGTERM, not the terminal's Ctrl-C.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if log != "" {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the log of %s: %w", name, err)
		}
		defer f.Close() // the child has its own descriptor
		p.cmd.Stdout, p.cmd.Stderr = f, f
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Name returns the name of the process for messages.
func (p *Process) Name() string { return p.name }

// PID is its process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Stop terminates the process, kills it after a timeout, and waits for its end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// ExitStatus returns the exit status of a process that has ended; -1 if a signal ended it.
func (p *Process) ExitStatus() int { return p.cmd.ProcessState.ExitCode() }

// Failure describes how a process ended unexpectedly. It must have ended.
func (p *Process) Failure() error {
	err := fmt.Errorf("%s ended by itself: %w", p.name, cmp.Or(p.err, errors.New("exit status 0")))
	switch {
	case p.log == "" && p.ExitStatus() < 0:
		return &HintedError{err, "See its messages above. If you did not stop it, the operating system may have killed it because memory ran out; dmesg shows that."}
	case p.log == "":
		return &HintedError{err, "See its messages above. If a port is in use, try --use-random-ports."}
	}
	if raw, failed := os.ReadFile(p.log); failed == nil {
		err = fmt.Errorf("%w; its log says:\n%s", err, strings.TrimSpace(string(raw)))
	}
	return err
}

// Await waits until url responds with status 200, or until a tcp: address accepts connections.
func (p *Process) Await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !reachable(ctx, url) {
		select {
		case <-p.ended:
			return p.Failure()
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s did not respond on %s within %s", p.name, url, startTimeout)
			}
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

func reachable(ctx context.Context, url string) bool {
	if addr, ok := strings.CutPrefix(url, "tcp:"); ok {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	_, err := request(ctx, http.MethodGet, url, "", "")
	return err == nil
}

// request makes a JSON request, with a token unless it is empty, and returns the body of a
// response with status 2xx.
func request(ctx context.Context, method, url, body, token string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("content-type", "application/json")
	}
	if token != "" {
		req.Header.Set("authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, raw)
	}
	return raw, nil
}
