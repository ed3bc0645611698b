package harness

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Process is a child process whose output goes to a log file.
type Process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	exited  chan struct{} // closed after Wait has returned
	err     error         // result of Wait; read only after exited is closed
}

// startProcess calls start with cmd, appending stdout and stderr to logPath.
func startProcess(name string, cmd *exec.Cmd, logPath string, start func(*exec.Cmd) error) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, cmd: cmd, logPath: logPath, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited returns a channel that is closed when the process has exited.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err returns the exit error of a process that should not have exited; it is never
// nil. Call it only after Exited is closed.
func (p *Process) Err() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// Running reports whether the process has not exited.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("send %s to %s: %w", s, p.name, err)
	}
	return nil
}

// Kill sends SIGKILL and waits until the process has exited.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Terminate sends SIGTERM and waits until the process has exited. After the grace
// period it kills the process and returns an error.
func (p *Process) Terminate(grace time.Duration) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("%s did not exit within %s of SIGTERM", p.name, grace)
	}
}

// Stopped reports whether the process is stopped by a signal.
func (p *Process) Stopped() bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return false
	}
	// The state follows the command name, which is in parentheses and may contain any character.
	end := strings.LastIndex(string(raw), ") ")
	return end >= 0 && strings.HasPrefix(string(raw[end+2:]), "T")
}

// AwaitExit waits until the process has exited; it returns an error on timeout.
func (p *Process) AwaitExit(timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s did not exit within %s", p.name, timeout)
	}
}

// LogTail returns the last lines of the process' output.
func (p *Process) LogTail(lines int) string {
	f, err := os.Open(p.logPath)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const window = 64 << 10
	if info, err := f.Stat(); err == nil && info.Size() > window {
		_, _ = f.Seek(-window, io.SeekEnd)
	}
	raw, _ := io.ReadAll(f)
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
