package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// maxPrinted is how many lines of a failed test are printed: some print the logs of their processes.
const maxPrinted = 4000

// killed starts what go test writes about a process that does not end after its timeout.
const killed = "*** Test killed"

// event is what "go test -json" writes on each line, see "go doc test2json" and "go help buildjson".
type event struct {
	Action     string
	Package    string
	Test       string // empty for what concerns the package
	Output     string
	ImportPath string // of a build
	// FailedBuild is the ImportPath of the build without which the tests of Package cannot run.
	FailedBuild string
}

// failure is a failed test or, if Test is empty, a failed package.
type failure struct {
	Package, Test string
	Unfinished    bool // the package ended before the test
	Output        []string
}

// results collects the output of the packages that are being tested.
type results struct {
	out      io.Writer
	packages map[string]*packageOutput
	builds   map[string][]string // output by import path
	failures []failure
}

// packageOutput is the output of a package so far, without that of tests that have passed.
type packageOutput struct {
	own   []string // of no test
	order []string // the tests in the order in which they started
	tests map[string]*testOutput
}

type testOutput struct {
	failed bool
	lines  []string
}

// report reads events until their end, writes the result of each package to out when it ends, and
// returns what has failed.
func report(events io.Reader, out io.Writer) ([]failure, error) {
	r := &results{out: out, packages: map[string]*packageOutput{}, builds: map[string][]string{}}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil:
			_, _ = out.Write(line) // of the go command itself
		default:
			r.add(e)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return r.failures, fmt.Errorf("read the events of go test: %w", err)
		}
	}
	// Packages without a result: go test was interrupted.
	for name := range r.packages {
		r.endPackage(name, true)
	}
	return r.failures, nil
}

func (r *results) add(e event) {
	if e.Action == "build-output" {
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &packageOutput{tests: map[string]*testOutput{}}
		r.packages[e.Package] = p
	}
	if e.Test != "" {
		p.add(e)
		return
	}
	switch e.Action {
	case "output":
		p.own = append(p.own, e.Output)
	case "pass", "skip":
		r.endPackage(e.Package, false)
	case "fail":
		p.own = append(r.builds[e.FailedBuild], p.own...)
		r.endPackage(e.Package, true)
	}
}

func (p *packageOutput) add(e event) {
	t := p.tests[e.Test]
	if t == nil {
		t = &testOutput{}
		p.tests[e.Test] = t
		p.order = append(p.order, e.Test)
	}
	switch e.Action {
	case "output":
		t.lines = append(t.lines, e.Output)
	case "pass", "skip":
		// go test reports the running test of a process that it kills as passed.
		if n := len(t.lines); n == 0 || !strings.HasPrefix(t.lines[n-1], killed) {
			delete(p.tests, e.Test)
		}
	case "fail":
		t.failed = true
	}
}

// endPackage writes the result of a package, and its failures if it has failed.
func (r *results) endPackage(name string, failed bool) {
	p := r.packages[name]
	delete(r.packages, name)
	if !failed {
		if len(p.own) > 0 {
			_, _ = io.WriteString(r.out, p.own[len(p.own)-1]) // "ok", package and duration
		}
		return
	}
	known := len(r.failures)
	for _, test := range p.order {
		t := p.tests[test]
		if t == nil {
			continue
		}
		delete(p.tests, test) // it may be in order again, with -count
		for _, line := range ends(t.lines, maxPrinted/2, maxPrinted/2) {
			_, _ = fmt.Fprintln(r.out, strings.TrimSuffix(line, "\n"))
		}
		r.failures = append(r.failures, failure{Package: name, Test: test, Unfinished: !t.failed, Output: t.lines})
	}
	_, _ = io.WriteString(r.out, strings.Join(p.own, ""))
	if len(r.failures) == known {
		r.failures = append(r.failures, failure{Package: name, Output: p.own})
	}
}
