//go:build amd64 || arm64

package sim

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

const (
	addrNoRandomize = 0x0040000 // personality(2)
	auxRandom       = 25        // AT_RANDOM, getauxval(3)
)

// startSeeded starts a process whose randomness is derived from the seed: the kernel passes 16
// random bytes to each process, from which the Go runtime derives all its random choices (select,
// map iteration, hashes, math/rand, timers that are due at the same instant). They are overwritten
// before the first instruction. Addresses are not randomized either.
func startSeeded(cmd *exec.Cmd, seed uint64) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // traces the child, and ends with the goroutine
		started <- startTraced(cmd, seed)
	}()
	return <-started
}

func startTraced(cmd *exec.Cmd, seed uint64) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PERSONALITY, addrNoRandomize, 0, 0); errno != 0 {
		return fmt.Errorf("personality: %w", errno)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	err := reseed(pid, seed)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return err
}

func reseed(pid int, seed uint64) error {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
		return fmt.Errorf("wait for the process: %w", err)
	}
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
		return fmt.Errorf("read registers: %w", err)
	}
	at, err := randomBytes(pid, uintptr(stackPointer(&regs)))
	if err != nil {
		return err
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], seed+1)
	binary.LittleEndian.PutUint64(b[8:], ^seed)
	if _, err := syscall.PtracePokeData(pid, at, b[:]); err != nil {
		return fmt.Errorf("write the seed: %w", err)
	}
	return syscall.PtraceDetach(pid)
}

// randomBytes finds the random bytes of a process that has not started. Its stack contains the
// number of arguments, the arguments, the environment, and the auxiliary vector, with a zero after
// each of the lists.
func randomBytes(pid int, sp uintptr) (uintptr, error) {
	word := func() (uintptr, error) {
		var b [8]byte
		_, err := syscall.PtracePeekData(pid, sp, b[:])
		sp += 8
		return uintptr(binary.LittleEndian.Uint64(b[:])), err
	}
	for zeros := 0; zeros < 2; {
		w, err := word()
		if err != nil {
			return 0, err
		}
		if w == 0 {
			zeros++
		}
	}
	for {
		key, err := word()
		if err != nil {
			return 0, err
		}
		value, err := word()
		switch {
		case err != nil:
			return 0, err
		case key == 0:
			return 0, fmt.Errorf("the kernel gave process %d no random bytes", pid)
		case key == auxRandom:
			return value, nil
		}
	}
}
