//go:build simulation && failpoints

package sim

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"platform/internal/boottime"
	"platform/internal/failpoint"
)

var (
	workerSeed    = flag.Uint64("sim.seed", 0, "the seed to play")
	workerPlant   = flag.String("sim.plant", "", "the defect to plant")
	workerFaults  = flag.String("sim.faults", "", "the kinds of faults to inject, separated by commas; empty: drawn from the seed")
	workerNodes   = flag.Int("sim.nodes", 0, "the number of nodes; 0: drawn from the seed")
	workerLog     = flag.Bool("sim.log", false, "print what the servers log")
	workerFrames  = flag.Bool("sim.frames", false, "note each message between nodes")
	workerOffsets = flag.String("sim.offsets", "", "where members of the runtime lie, see monitor.go; empty: unknown")
	workerOut     = flag.String("sim.out", "", "file for the result")
)

// ballast makes the runtime draw the next sample of the memory profile now.
var ballast []byte

// TestWorker runs one seed and exits, since the state of a simulation cannot be reused.
func TestWorker(t *testing.T) {
	debug.SetGCPercent(-1) // it uses the same random source as everything else
	debug.SetMemoryLimit(2 << 30)
	idleMutexes()
	runtime.MemProfileRate = 0 // sampling uses the same random source, too
	ballast = make([]byte, 4<<20)
	var at []uintptr
	for text := range strings.SplitSeq(*workerOffsets, ",") {
		if n, err := strconv.ParseUint(text, 10, 32); err == nil {
			at = append(at, uintptr(n))
		}
	}
	if len(at) == len(requiredFields) {
		stopMonitor(at[0])
		tickOffsets = at[1:]
	}
	hooks.onPause, hooks.suspend = failpoint.OnPause, boottime.Suspend
	results := make(chan *Result, 1)
	var log io.Writer
	if *workerLog {
		log = os.Stderr
	}
	var kinds []string
	if *workerFaults != "" {
		kinds = strings.Split(*workerFaults, ",")
	}
	go synctest.Test(t, func(*testing.T) {
		reseedThread(*workerSeed)
		results <- Run(*workerSeed, Options{Defect: *workerPlant, FaultKinds: kinds, Nodes: *workerNodes, Frames: *workerFrames, Log: log})
		select {}
	})
	r := <-results
	r.Check()
	out, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(*workerOut, out, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}
