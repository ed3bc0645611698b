package process

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what the process used at its last measurement.
type Usage struct {
	// CPU is the number of cores that were busy on average, Cores how many the process may use.
	CPU   float64
	Cores int
	// Memory is the resident memory in bytes, MemoryLimit how much the process may use; 0 if
	// unknown.
	Memory, MemoryLimit uint64
}

// interval is the time between two measurements.
const interval = 5 * time.Second

// Meter measures the usage of this process. It is safe for concurrent use.
type Meter struct {
	limit uint64
	last  atomic.Pointer[Usage]
}

// NewMeter returns a meter.
func NewMeter() *Meter {
	m := &Meter{limit: memoryLimit(os.ReadFile)}
	m.last.Store(m.measure(0))
	return m
}

// Usage returns the last measurement.
func (m *Meter) Usage() Usage { return *m.last.Load() }

// Run measures until ctx ends, and calls measured after each time.
func (m *Meter) Run(ctx context.Context, measured func(Usage)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	cpu, at := processorTime(), time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		now, used := time.Now(), processorTime()
		m.last.Store(m.measure(float64(used-cpu) / float64(max(now.Sub(at), time.Millisecond))))
		cpu, at = used, now
		measured(m.Usage())
	}
}

func (m *Meter) measure(cpu float64) *Usage {
	return &Usage{CPU: cpu, Cores: runtime.GOMAXPROCS(0), Memory: residentMemory(os.ReadFile), MemoryLimit: m.limit}
}

// processorTime is what the process has used since its start.
func processorTime() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// residentMemory returns the resident memory in bytes, 0 if it is unknown.
func residentMemory(read func(string) ([]byte, error)) uint64 {
	text, err := read("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// memoryLimit returns the memory of the machine, or the limit of the container if that is lower; 0
// if neither is known.
func memoryLimit(read func(string) ([]byte, error)) uint64 {
	if limit := containerMemory(read); limit > 0 {
		return limit
	}
	return machineMemory()
}

// machineMemory returns the memory of the machine; 0 if it is not known.
func machineMemory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return info.Totalram * uint64(info.Unit)
}

// containerMemory returns the limit of the container; 0 if there is none below the memory of the machine.
func containerMemory(read func(string) ([]byte, error)) (limit uint64) {
	lowest := machineMemory()
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := read(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && (lowest == 0 || n < lowest) {
			limit, lowest = n, n
		}
	}
	return limit
}
