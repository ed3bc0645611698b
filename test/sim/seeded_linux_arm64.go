package sim

import "syscall"

func stackPointer(r *syscall.PtraceRegs) uint64 { return r.Sp }
