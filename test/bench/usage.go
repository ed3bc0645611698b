package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc. The kernel shows it to programs as
// 1/100 s on every architecture Go runs on.
const tick = 10 * time.Millisecond

// usage is what a process has used.
type usage struct {
	cpu time.Duration // user and system, since its start
	rss int64         // resident bytes now
}

// usageOf reads the usage of a running process.
func usageOf(pid int) (usage, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("read CPU time: %w", err)
	}
	return parseUsage(string(raw), int64(os.Getpagesize()))
}

// parseUsage reads the text of /proc/PID/stat. The name of the program, in
// parentheses, may hold anything; what is counted stands behind it: the state is
// field 3, utime and stime are 14 and 15, rss in pages is 24.
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
	return usage{cpu: time.Duration(numbers[0]+numbers[1]) * tick, rss: numbers[2] * pageSize}, nil
}
