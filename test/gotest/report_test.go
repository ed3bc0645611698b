package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnlyFailedTestsArePrintedAndSummarized(t *testing.T) {
	for _, c := range []struct {
		name          string
		events        []event
		output        string
		wantedSummary string
	}{
		{
			name: "passed packages have one line each",
			events: []event{
				{Action: "start", Package: "p"},
				{Action: "output", Package: "p", Test: "TestA", Output: "=== RUN   TestA\n"},
				{Action: "output", Package: "p", Test: "TestA", Output: "noise\n"},
				{Action: "pass", Package: "p", Test: "TestA"},
				{Action: "output", Package: "p", Output: "PASS\n"},
				{Action: "output", Package: "p", Output: "ok  \tp\t0.1s\n"},
				{Action: "pass", Package: "p"},
				{Action: "output", Package: "q", Output: "?   \tq\t[no test files]\n"},
				{Action: "skip", Package: "q"},
			},
			output: "ok  \tp\t0.1s\n?   \tq\t[no test files]\n",
		},
		{
			name: "a failed assertion of a subtest",
			events: []event{
				{Action: "output", Package: "p", Test: "TestGood", Output: "of a test that passed\n"},
				{Action: "pass", Package: "p", Test: "TestGood"},
				{Action: "output", Package: "p", Test: "TestA", Output: "=== RUN   TestA\n"},
				{Action: "output", Package: "p", Test: "TestA/sub", Output: "printed\n    a_test.go:7: logged\n"},
				{Action: "output", Package: "p", Test: "TestA/sub", Output: "    a_test.go:9: \n        \tError Trace:\tp/a_test.go:9\n"},
				{Action: "output", Package: "p", Test: "TestA/sub", Output: "        \tError:      \tNot equal: \n        \t            \texpected: 1\n"},
				{Action: "output", Package: "p", Test: "TestA/sub", Output: "        \tTest:       \tTestA/sub\n        \tMessages:   \tthe sum\n"},
				{Action: "output", Package: "p", Test: "TestA/sub", Output: "    --- FAIL: TestA/sub (0.00s)\n"},
				{Action: "fail", Package: "p", Test: "TestA/sub"},
				{Action: "output", Package: "p", Test: "TestA", Output: "--- FAIL: TestA (0.00s)\n"},
				{Action: "fail", Package: "p", Test: "TestA"},
				{Action: "output", Package: "p", Output: "FAIL\n"},
				{Action: "output", Package: "p", Output: "FAIL\tp\t0.1s\n"},
				{Action: "fail", Package: "p"},
			},
			output: `=== RUN   TestA
--- FAIL: TestA (0.00s)
printed
    a_test.go:7: logged
    a_test.go:9: 
        	Error Trace:	p/a_test.go:9
        	Error:      	Not equal: 
        	            	expected: 1
        	Test:       	TestA/sub
        	Messages:   	the sum
    --- FAIL: TestA/sub (0.00s)
FAIL
FAIL	p	0.1s
`,
			wantedSummary: `
Failed: 1
p TestA/sub
    a_test.go:9:
        	Error:      	Not equal:
        	            	expected: 1
        	Messages:   	the sum
`,
		},
		{
			name: "without an assertion, the last of what was logged",
			events: []event{
				{Action: "output", Package: "p", Test: "TestA", Output: "printed\n    a_test.go:9: 3 too many\n"},
				{Action: "fail", Package: "p", Test: "TestA"},
				{Action: "output", Package: "p", Output: "FAIL\tp\t0.1s\n"},
				{Action: "fail", Package: "p"},
			},
			output:        "printed\n    a_test.go:9: 3 too many\nFAIL\tp\t0.1s\n",
			wantedSummary: "\nFailed: 1\np TestA\n    a_test.go:9: 3 too many\n",
		},
		{
			name: "a timeout",
			events: []event{
				{Action: "output", Package: "p", Test: "TestParallel", Output: "=== RUN   TestParallel\n"},
				{Action: "output", Package: "p", Test: "TestA", Output: "panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n"},
				{Action: "output", Package: "p", Output: "FAIL\tp\t1.0s\n"},
				{Action: "fail", Package: "p"},
			},
			output:        "=== RUN   TestParallel\npanic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\nFAIL\tp\t1.0s\n",
			wantedSummary: "\nFailed: 1\np TestA (did not end)\n    panic: test timed out after 1s\n    \trunning tests:\n    \t\tTestA (1s)\n",
		},
		{
			name: "go test kills the process",
			events: []event{
				{Action: "output", Package: "p", Test: "TestA", Output: "SIGQUIT: quit\n"},
				{Action: "output", Package: "p", Test: "TestA", Output: "*** Test killed with quit: ran too long (1m3s).\n"},
				{Action: "pass", Package: "p", Test: "TestA"},
				{Action: "output", Package: "p", Output: "FAIL\tp\t63.0s\n"},
				{Action: "fail", Package: "p"},
			},
			output:        "SIGQUIT: quit\n*** Test killed with quit: ran too long (1m3s).\nFAIL\tp\t63.0s\n",
			wantedSummary: "\nFailed: 1\np TestA (did not end)\n    SIGQUIT: quit\n    *** Test killed with quit: ran too long (1m3s).\n",
		},
		{
			name: "a package fails after its tests",
			events: []event{
				{Action: "pass", Package: "p", Test: "TestA"},
				{Action: "output", Package: "p", Output: "PASS\ngoleak: Errors on successful test run: found a goroutine\nexit status 1\n"},
				{Action: "output", Package: "p", Output: "FAIL\tp\t1.0s\n"},
				{Action: "fail", Package: "p"},
			},
			output:        "PASS\ngoleak: Errors on successful test run: found a goroutine\nexit status 1\nFAIL\tp\t1.0s\n",
			wantedSummary: "\nFailed: 1\np\n    goleak: Errors on successful test run: found a goroutine\n",
		},
		{
			name: "a build fails",
			events: []event{
				{Action: "build-output", ImportPath: "p [p.test]", Output: "# p [p.test]\n"},
				{Action: "build-output", ImportPath: "p [p.test]", Output: "./a_test.go:1:1: undefined: x\n"},
				{Action: "build-fail", ImportPath: "p [p.test]"},
				{Action: "output", Package: "p", Output: "FAIL\tp [build failed]\n"},
				{Action: "fail", Package: "p", FailedBuild: "p [p.test]"},
			},
			output:        "# p [p.test]\n./a_test.go:1:1: undefined: x\nFAIL\tp [build failed]\n",
			wantedSummary: "\nFailed: 1\np\n    # p [p.test]\n    ./a_test.go:1:1: undefined: x\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stream, output, summary bytes.Buffer
			for _, e := range c.events {
				require.NoError(t, json.NewEncoder(&stream).Encode(e))
			}
			failures, err := report(&stream, &output)
			require.NoError(t, err)
			summarize(failures, &summary)
			assert.Equal(t, c.output, output.String())
			assert.Equal(t, c.wantedSummary, summary.String())
		})
	}
}

func TestPackagesWithoutAResultHaveFailed(t *testing.T) {
	failures, err := report(strings.NewReader(`{"Action":"output","Package":"p","Test":"TestA","Output":"started\n"}`), new(bytes.Buffer))
	require.NoError(t, err)
	assert.Equal(t, []failure{{Package: "p", Test: "TestA", Unfinished: true, Output: []string{"started\n"}}}, failures)
}

func TestManyFailuresAreOnlyNamed(t *testing.T) {
	var failures []failure
	for range 2 * maxDetailed {
		failures = append(failures, failure{Package: "p", Test: "TestA", Output: []string{strings.Repeat("a line\n", 2*maxLines)}})
	}
	var summary bytes.Buffer
	summarize(failures, &summary)
	assert.Equal(t, maxDetailed*maxLines, strings.Count(summary.String(), "a line\n"))
	assert.Equal(t, maxDetailed, strings.Count(summary.String(), "    ... 12 lines ...\n"))
	assert.Equal(t, 2*maxDetailed, strings.Count(summary.String(), "p TestA\n"))
}
