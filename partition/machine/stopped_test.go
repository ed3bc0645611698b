package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// The end of an invocation says whether it was killed or cancelled.
func TestKilledAndCancelledInvocationsAreStopped(t *testing.T) {
	cancel := func(w *world) machine.Command {
		return &machine.Signal{Target: w.id("a"), ID: journal.NumberedSignal(journal.CancelSignal)}
	}
	fail := func(code uint32) func(w *world) machine.Command {
		return func(*world) machine.Command {
			output := machinetest.Output(journal.Result{Failure: &journal.Failure{Code: code, Message: "cancelled"}})
			return &machine.Progress{Steps: []machine.Step{output, machinetest.End()}}
		}
	}
	kill := func(w *world) machine.Command { return &machine.Kill{Target: w.id("a")} }
	for name, test := range map[string]struct {
		delayed  bool
		commands []func(*world) machine.Command
		stopped  bool
	}{
		"killed":                           {false, []func(*world) machine.Command{kill}, true},
		"cancelled before it started":      {true, []func(*world) machine.Command{cancel}, true},
		"cancelled while it ran":           {false, []func(*world) machine.Command{cancel, fail(409)}, true},
		"failed otherwise after a cancel":  {false, []func(*world) machine.Command{cancel, fail(500)}, false},
		"failed with 409 without a cancel": {false, []func(*world) machine.Command{fail(409)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			p := w.parts[0]
			var ended *machine.Finish
			apply := func(c machine.Command) {
				if progress, ok := c.(*machine.Progress); ok {
					inv, err := p.state.Invocation(w.id("a"))
					require.NoError(t, err)
					progress.ID, progress.Attempt = inv.ID, inv.Attempt
				}
				o, effects, err := p.machine.Apply(p.state, machine.Header{Epoch: 1, Time: w.now, Level: feature.Level4}, c, nil)
				require.NoError(t, err)
				require.Equal(t, machine.OK, o.Code)
				for _, e := range effects {
					if finish, ok := e.(*machine.Finish); ok {
						ended = finish
					}
				}
			}
			invoke := &machine.Invoke{ID: w.id("a"), Target: parseTarget("Greeter/greet", "service"), Input: journal.NewInput(nil, nil)}
			if test.delayed {
				invoke.StartAt = w.now + 1000
			}
			apply(invoke)
			for _, c := range test.commands {
				apply(c(w))
			}
			require.NotNil(t, ended)
			require.Equal(t, test.stopped, ended.Stopped)
		})
	}
}
