package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"platform/test/harness"
)

//go:embed targets/*.json
var builtin embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	harness.Cleanup()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run reads the command line, measures and prints the table.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	targets := flags.String("targets", "platform", "built-in targets ("+builtinNames()+") or paths of target files, comma-separated; the first is compared with the others")
	steps := flags.String("steps", defaultSteps, "steps to measure: workload[:size][/workers], comma-separated")
	records := flags.String("out", "", "append each result to this file, as JSON lines")
	page := flags.String("page", "", "write a page that compares the targets to this HTML file; the default steps are then those of the page")
	p := &benchmark{progress: progress, records: io.Discard}
	flags.IntVar(&p.rounds, "rounds", 1, "number of times that all steps run on all targets")
	flags.DurationVar(&p.duration, "duration", 3*time.Second, "measured duration of a step, longer if there is no response before, unless its size is a number of sends")
	flags.DurationVar(&p.warmup, "warmup", time.Second, "warm-up under load before measuring")
	flags.DurationVar(&p.spread, "spread", 0, "send at equal intervals over this time, in steps whose size is a number of sends (default: as fast as the server accepts them)")
	flags.StringVar(&p.profiles, "profiles", "", "existing directory for a CPU profile of each step; only for targets that are builds of this server")
	flags.StringVar(&p.dir, "dir", "", "directory for data, on the disk to be measured (default: the system's temporary directory)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || p.rounds < 1 || p.duration <= 0 || p.warmup < 0 || p.spread < 0 {
		return fmt.Errorf("invalid arguments %q; see -help", args)
	}
	if *page != "" && *steps == defaultSteps {
		*steps = pageSteps
	}
	p.page = *page
	var err error
	if p.steps, err = parseSteps(*steps); err != nil {
		return err
	}
	if p.targets, err = loadTargets(*targets); err != nil {
		return err
	}
	if *records != "" {
		f, err := os.OpenFile(*records, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		p.records = f
	}
	if p.endpoint, err = harness.Build("platform/test/bench/service"); err != nil {
		return err
	}
	return p.report(ctx, out)
}

// report runs the benchmark and prints the results so far, also after an error.
func (p *benchmark) report(ctx context.Context, out io.Writer) error {
	names := make([]string, len(p.targets))
	for i, t := range p.targets {
		names[i] = t.Name
	}
	results, err := p.run(ctx)
	if ctx.Err() != nil {
		err = errors.New("interrupted") // other errors are consequences
	}
	if len(results) > 0 {
		fmt.Fprintln(out)
		if tableErr := writeTable(out, names, results); err == nil {
			err = tableErr
		}
		if p.page != "" {
			err = errors.Join(err, writePage(p.page, names, results))
		}
	}
	return err
}

// loadTargets loads comma-separated targets.
func loadTargets(list string) ([]harness.Target, error) {
	var targets []harness.Target
	seen := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		t, err := loadTarget(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("duplicate target %q", t.Name)
		}
		seen[t.Name] = true
		targets = append(targets, t)
	}
	return targets, nil
}

// loadTarget loads a built-in target or, if the name looks like a path, a file.
func loadTarget(name string) (harness.Target, error) {
	if strings.Contains(name, "/") || strings.HasSuffix(name, ".json") {
		return harness.LoadTarget(name)
	}
	raw, err := builtin.ReadFile("targets/" + name + ".json")
	if err != nil {
		return harness.Target{}, fmt.Errorf("unknown target %q; use one of %s, or the path of a file", name, builtinNames())
	}
	return harness.ParseTarget(raw)
}

func builtinNames() string {
	entries, err := builtin.ReadDir("targets")
	if err != nil {
		panic(err) // embedded, cannot fail
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".json")
	}
	return strings.Join(names, ", ")
}
