package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc, 1/100 s on all architectures that Go
// supports.
const clockTick = 10 * time.Millisecond

// usage is the resource usage of a process.
type usage struct {
	cpu time.Duration // user and system, since its start
	rss int64         // resident bytes now
	// written is what the process has written to files, in bytes, including what was
	// deleted before it reached the disk.
	written int64
}

// usageOf reads the usage of a running process.
func usageOf(pid int) (usage, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("read CPU time: %w", err)
	}
	u, err := parseUsage(string(raw), int64(os.Getpagesize()))
	if err != nil {
		return usage{}, err
	}
	if raw, err = os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)); err != nil {
		return usage{}, fmt.Errorf("read written bytes: %w", err)
	}
	u.written, err = parseWritten(string(raw))
	return u, err
}

// parseUsage parses /proc/PID/stat. The program name in parentheses may contain any
// character; of the fields after it, the state is field 3, utime and stime are 14 and 15,
// and rss in pages is 24.
func parseUsage(stat string, pageSize int64) (usage, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 22 {
		return usage{}, fmt.Errorf("process status %.80q has only %d fields", stat, len(fields))
	}
	var numbers [3]int64
	for i, field := range []int{14, 15, 24} {
		n, err := strconv.ParseInt(fields[field-3], 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("process status, field %d: %w", field, err)
		}
		numbers[i] = n
	}
	return usage{cpu: time.Duration(numbers[0]+numbers[1]) * clockTick, rss: numbers[2] * pageSize}, nil
}

// parseWritten parses /proc/PID/io.
func parseWritten(text string) (int64, error) {
	_, rest, _ := strings.Cut(text, "\nwrite_bytes:")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("written bytes in %.200q: %w", text, err)
	}
	return n, nil
}
