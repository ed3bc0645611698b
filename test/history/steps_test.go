package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckSteps(t *testing.T) {
	run := func(step int, nonce string, seen ...string) Execution {
		return Execution{Step: step, Nonce: nonce, Seen: seen}
	}
	for _, c := range []struct {
		name       string
		executions []Execution
		output     []string
		violation  string
	}{
		{"each step once",
			[]Execution{run(0, "a"), run(1, "b", "a")}, []string{"a", "b"}, ""},
		{"a step repeated before its acknowledgement",
			[]Execution{run(0, "a"), run(0, "a2"), run(1, "b", "a2")}, []string{"a2", "b"}, ""},
		{"the last step repeated before the output",
			[]Execution{run(0, "a"), run(1, "b", "a"), run(1, "b2", "a")}, []string{"a", "b2"}, ""},
		{"an acknowledged step runs again",
			[]Execution{run(0, "a"), run(1, "b", "a"), run(0, "a2"), run(1, "b2", "a2")}, []string{"a2", "b2"}, "step 0 ran again"},
		{"an acknowledged step runs again with the same result",
			[]Execution{run(0, "a"), run(1, "b", "a"), run(0, "a")}, []string{"a", "b"}, "step 0 ran again"},
		{"a result changes between attempts",
			[]Execution{run(0, "a"), run(0, "a2"), run(1, "b", "a"), run(1, "b2", "a2")}, []string{"a2", "b2"}, "changed from a to a2"},
		{"the output differs from the acknowledged result",
			[]Execution{run(0, "a"), run(0, "a2"), run(1, "b", "a")}, []string{"a2", "b"}, "output: the result of step 0 changed"},
		{"a result without an execution",
			[]Execution{run(0, "a")}, []string{"x"}, "comes from no execution"},
		{"a skipped step",
			[]Execution{run(1, "b")}, []string{"b"}, "saw 0 results, want 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckSteps(c.executions, c.output)
			if c.violation == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.violation)
			}
		})
	}
}

func TestCheckRecordedSteps(t *testing.T) {
	first := Execution{Step: 0, Nonce: "a"}
	second := Execution{Step: 1, Nonce: "b", Seen: []string{"a"}}
	zombie := Execution{Step: 0, Nonce: "z"}
	history := []Execution{first, second, zombie}
	require.NoError(t, CheckRecordedSteps(history, []string{"a", "b"}))
	require.ErrorContains(t, CheckRecordedSteps(history, []string{"z", "b"}), "changed from a to z")
	require.ErrorContains(t, CheckSteps(history, []string{"a", "b"}), "ran again")
}
