package sim

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/failpoint"
)

var (
	oneSeed   = flag.Int64("seed", -1, "play this seed only, and print what happened")
	firstSeed = flag.Uint64("first", 1, "the first seed")
	seeds     = flag.Int("seeds", 0, "how many seeds to play; 0: those of make test")
	atATime   = flag.Int("parallel-seeds", 2, "how many seeds to play at a time")
	repeats   = flag.Int("repeats", 1, "how often to play each seed, to compare the traces")
	frameLog  = flag.Bool("frames", false, "with -seed: print each message between nodes")
	planted   = flag.String("plant", "", "a failpoint of the server that is active in all seeds")
	// In real time, so that it needs to be longer where the processes are suspended now and then.
	seedTimeout = flag.Duration("seed-timeout", 5*time.Minute, "how long one seed may take")
	serverLog   = flag.Bool("server-log", false, "with -seed: print what the servers log")
)

const (
	// defaultSeeds is the default number of seeds, defaultDuration the limit of their total
	// duration on a busy machine.
	defaultSeeds    = 200
	defaultDuration = 4 * time.Minute
)

// smallBatches makes changes of the rules of flow control take several log entries.
const smallBatches = string(failpoint.ReevaluatedCounters) + "=2," + string(failpoint.RingLeaves) + "=2"

// smallSizes makes some of the commands wait for others, in most seeds.
func smallSizes(seed uint64) string {
	rng := newRand(seed, "sizes")
	var values []string
	if size := []int{0, 230, 290}[rng.IntN(3)]; size > 0 {
		values = append(values, fmt.Sprintf("%s=%d", failpoint.YieldingBytes, size))
	}
	if size := []int{0, 400, 2500}[rng.IntN(3)]; size > 0 {
		values = append(values, fmt.Sprintf("%s=%d", failpoint.BulkBytes, size))
	}
	return strings.Join(values, ",")
}

// seedRunner is the program that runs one seed.
type seedRunner struct {
	program, dir string
	offsets      string // of members of the runtime, empty: unknown
}

// sharedRunner is used by all tests here once it has been built.
var sharedRunner *seedRunner

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if sharedRunner != nil {
		_ = os.RemoveAll(sharedRunner.dir)
	}
	os.Exit(code)
}

// newSeedRunner builds this package as a program in which waiting for a mutex does not stop
// the virtual time (see runtime.go).
func newSeedRunner(t *testing.T) *seedRunner {
	t.Helper()
	if sharedRunner != nil {
		return sharedRunner
	}
	dir, err := os.MkdirTemp("", "sim")
	require.NoError(t, err)
	w := &seedRunner{program: filepath.Join(dir, "sim.test"), dir: dir}
	build := exec.Command("go", "test", "-c", "-tags", "simulation,failpoints", "-ldflags=-checklinkname=0", "-o", w.program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // C code would run on additional threads
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	at, err := fieldOffsets(w.program)
	if err != nil {
		t.Logf("seeds are less reproducible: %v", err)
	}
	w.offsets = strings.Trim(fmt.Sprint(at), "[]")
	w.offsets = strings.ReplaceAll(w.offsets, " ", ",")
	sharedRunner = w
	return w
}

// runSeed runs a seed in a new process.
func (w *seedRunner) runSeed(seed uint64, name string, args ...string) (*Result, error) {
	return w.runPlanted(seed, name, failpoint.Name(*planted), args...)
}

// runPlanted runs a seed with a failpoint, "" for none.
func (w *seedRunner) runPlanted(seed uint64, name string, plant failpoint.Name, args ...string) (*Result, error) {
	out := filepath.Join(w.dir, name+".json")
	ctx, cancel := context.WithTimeout(context.Background(), *seedTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program, append([]string{
		"-test.run=^TestWorker$", "-test.timeout=0", "-sim.seed=" + strconv.FormatUint(seed, 10), "-sim.out=" + out, "-sim.offsets=" + w.offsets,
	}, args...)...)
	// One goroutine at a time, and no signals that preempt it.
	cmd.Env = []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "HOME=/", "TMPDIR=/tmp", "FAILPOINTS=" + strings.Join([]string{string(plant), smallBatches, smallSizes(seed)}, ",")}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := startSeeded(cmd, seed); err != nil {
		return nil, fmt.Errorf("seed %d: %w", seed, err)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("seed %d: %w\n%s", seed, err, tail(said.String(), 20_000))
	}
	defer os.Remove(out)
	b, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("seed %d: no result: %w\n%s", seed, err, tail(said.String(), 20_000))
	}
	r := new(Result)
	r.Log = said.String()
	return r, json.Unmarshal(b, r)
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// describe returns how to reproduce a failing seed.
func (r *Result) describe() string {
	return fmt.Sprintf("seed %d:\n  %s\nplay it again: go test ./test/sim -run TestSeeds -seed=%d -v", r.Seed, strings.Join(r.Violations, "\n  "), r.Seed)
}

// TestSeeds runs seeds, each a cluster with a different sequence of faults.
func TestSeeds(t *testing.T) {
	w := newSeedRunner(t)
	if *oneSeed >= 0 {
		w.replaySeed(t, uint64(*oneSeed))
		return
	}
	count := *seeds
	if count == 0 {
		count = defaultSeeds
	}
	var mu sync.Mutex // covers the fields below
	var frames, operations uint64
	next, differ := 0, 0
	var group sync.WaitGroup
	begin := time.Now()
	for range *atATime {
		group.Go(func() {
			for {
				mu.Lock()
				seed := *firstSeed + uint64(next)
				tired := *seeds == 0 && (t.Failed() || time.Since(begin) > defaultDuration)
				if next == count || tired {
					mu.Unlock()
					return
				}
				next++
				mu.Unlock()
				var first *Result
				for i := range *repeats {
					r, err := w.runSeed(seed, fmt.Sprintf("%d-%d", seed, i))
					if err != nil {
						t.Error(err)
						break
					}
					mu.Lock()
					frames += r.Frames
					operations += uint64(len(r.Operations))
					if first == nil {
						first = r
					} else if first.Messages != r.Messages {
						differ++
					}
					mu.Unlock()
					if len(r.Violations) > 0 {
						t.Errorf("%s\n%s", r.describe(), tail(r.Trace, 6_000))
					}
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d seeds, %d messages, %d operations on counters in %s", next, frames, operations, time.Since(begin).Round(time.Second))
	if *repeats > 1 {
		t.Logf("%d of %d repetitions differed from the first run of their seed", differ, next*(*repeats-1))
	}
}

// detectionDuration limits the search for the defects of a test, on a busy machine.
const detectionDuration = 150 * time.Second

// defectSeeds is the number of seeds within which a defect must be detected.
const defectSeeds = 150

// TestDefectsAreDetected requires that seeds detect each defect.
func TestDefectsAreDetected(t *testing.T) {
	w := newSeedRunner(t)
	begin := time.Now()
	for _, defect := range slices.Sorted(maps.Keys(Defects)) {
		t.Run(defect, func(t *testing.T) {
			detect(t, begin, Defects[defect], func(seed uint64, args ...string) (*Result, error) {
				return w.runSeed(seed, defect, append(args, "-sim.plant="+defect)...)
			})
		})
	}
}

// TestPlantedDefectsAreDetected requires that seeds detect each defect of the server.
func TestPlantedDefectsAreDetected(t *testing.T) {
	w := newSeedRunner(t)
	begin := time.Now()
	for _, plant := range slices.Sorted(maps.Keys(Planted)) {
		t.Run(string(plant), func(t *testing.T) {
			detect(t, begin, Planted[plant], func(seed uint64, args ...string) (*Result, error) {
				return w.runPlanted(seed, string(plant), plant, args...)
			})
		})
	}
}

// detect runs seeds until one has a violation with one of the signs.
func detect(t *testing.T, begin time.Time, d Detection, run func(seed uint64, args ...string) (*Result, error)) {
	t.Helper()
	args := []string{"-sim.faults=" + strings.Join(d.Faults, ","), "-sim.nodes=" + strconv.Itoa(d.Nodes)}
	for seed := *firstSeed; seed < *firstSeed+defectSeeds; seed++ {
		if time.Since(begin) > detectionDuration {
			t.Skipf("this machine is too busy: %d seeds did not find it in time", seed-*firstSeed)
		}
		r, err := run(seed, args...)
		require.NoError(t, err)
		for _, v := range r.Violations {
			if slices.ContainsFunc(d.Signs, func(sign string) bool { return strings.Contains(v, sign) }) {
				t.Logf("found by seed %d: %s", seed, v)
				return
			}
		}
	}
	t.Errorf("not detected within %d seeds", defectSeeds)
}

// replaySeed runs one seed and prints its trace.
func (w *seedRunner) replaySeed(t *testing.T, seed uint64) {
	var first *Result
	same := 0
	for i := range *repeats {
		r, err := w.runSeed(seed, strconv.Itoa(i), "-sim.log="+strconv.FormatBool(*serverLog), "-sim.frames="+strconv.FormatBool(*frameLog))
		require.NoError(t, err)
		if first == nil {
			first = r
			if *serverLog {
				t.Log(r.Log)
			}
			t.Log(r.Trace)
			if len(r.Violations) > 0 {
				t.Error(r.describe())
			}
		}
		if r.Messages == first.Messages {
			same++
		} else {
			t.Logf("run %d differs: %s", i, diffTraces(first.Trace, r.Trace))
		}
	}
	t.Logf("seed %d: trace %016x with messages %016x, %d of %d runs alike", seed, first.Events, first.Messages, same, *repeats)
}

// diffTraces returns the first difference of two traces.
func diffTraces(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			before := strings.Join(x[max(0, i-6):i], "\n  ")
			return fmt.Sprintf("event %d of %d\n  %s\n- %s\n+ %s", i, len(x), before, x[i], y[i])
		}
	}
	return "only in the messages between nodes"
}
