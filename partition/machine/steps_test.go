package machine_test

import (
	"fmt"
	"strings"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
	"platform/proto/service"
)

// progress parses the steps of an attempt, one per line. The attempt is the current one
// unless another is given.
func (w *world) progress(a arguments) *machine.Progress {
	c := &machine.Progress{ID: w.id(a.text("id", ""))}
	if inv, err := w.parts[w.owner(c.ID)].state.Invocation(c.ID); err == nil && inv != nil {
		c.Attempt = inv.Attempt
	}
	c.Attempt = uint64(a.number("attempt", int64(c.Attempt)))
	if pin := a.text("pin", ""); pin != "" {
		c.Pin = machine.Pin{Deployment: ids.Deployment(pin), Protocol: 6}
	}
	if text := a.text("failed", ""); text != "" { // total/counted/since-command
		f := &c.Failed
		if _, err := fmt.Sscanf(text, "%d/%d/%d", &f.Total, &f.Counted, &f.SinceCommand); err != nil {
			a.d.Fatalf(a.t, "failed=%s: %v", text, err)
		}
	}
	for _, words := range a.lines() {
		c.Steps = append(c.Steps, w.step(arguments{a.t, a.d}, words))
	}
	return c
}

// step parses one step: its name, then words and key=value pairs.
func (w *world) step(a arguments, words []string) machine.Step {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	id := func(i int) uint32 { return uint32(number(a, arg(i))) }
	switch words[0] {
	case "output": // output value | output failure code message
		return machinetest.Output(result(a, words[1:]))
	case "run": // run completion name
		return machinetest.Run(id(1), arg(2))
	case "run-completion": // run-completion completion value | … failure code message
		return machinetest.RunCompletion(id(1), result(a, words[2:]))
	case "sleep": // sleep completion until
		return machinetest.Sleep(id(1), number(a, arg(2)))
	case "set": // set key value
		return machinetest.SetState(arg(1), []byte(arg(2)))
	case "clear":
		return machinetest.ClearState(arg(1))
	case "clear-all":
		return machinetest.ClearAllState()
	case "get": // get completion key
		return machinetest.GetState(id(1), arg(2))
	case "get-keys":
		return machinetest.GetStateKeys(id(1))
	case "get-eager":
		return machinetest.Command(journal.GetEagerState, &service.GetEagerStateCommandMessage{Key: []byte(arg(1))})
	case "get-eager-keys":
		return machinetest.Command(journal.GetEagerStateKeys, &service.GetEagerStateKeysCommandMessage{})
	case "call": // call callee idCompletion completion target type input retain
		return machinetest.Call(id(2), id(3), parseTarget(arg(4), arg(5)), []byte(arg(6)), machine.Callee{ID: w.id(arg(1)), Retention: retention(arg(7))})
	case "send": // send callee idCompletion at target type input retain
		return machinetest.Send(id(2), parseTarget(arg(4), arg(5)), []byte(arg(6)), number(a, arg(3)), machine.Callee{ID: w.id(arg(1)), Retention: retention(arg(7))})
	case "suspend": // suspend completion…, or suspend all completion…
		return suspend(a, words[1:])
	case "suspend-uncancelled": // the same, but a cancel does not count
		s := suspend(a, words[1:])
		s.Await.Signals = s.Await.Signals[1:]
		return s
	case "get-promise": // get-promise completion key
		return machinetest.GetPromise(id(1), arg(2))
	case "peek-promise":
		return machinetest.PeekPromise(id(1), arg(2))
	case "complete-promise": // complete-promise completion key value | … failure code message
		return machinetest.CompletePromise(id(1), arg(2), result(a, words[3:]))
	case "signal": // signal target s1|name value | … failure code message
		return machinetest.SendSignal(w.id(arg(1)), signalID(a, arg(2)), optionalResult(a, words[3:]))
	case "complete-awakeable": // complete-awakeable target signal value | … failure code message
		return machinetest.CompleteAwakeable(w.id(arg(1)), id(2), result(a, words[3:]))
	case "attach": // attach completion target
		return machinetest.Attach(id(1), w.id(arg(2)))
	case "output-of": // output-of completion target
		return machinetest.GetOutput(id(1), w.id(arg(2)))
	case "end":
		return machinetest.End()
	case "fail": // fail code message
		return machine.Step{Kind: machine.StepFail, Failure: &machine.AttemptFailure{Code: id(1), Message: strings.Join(words[2:], " ")}}
	case "pause":
		return machine.Step{Kind: machine.StepPause, Failure: &machine.AttemptFailure{Code: id(1), Message: strings.Join(words[2:], " ")}}
	case "pause-at-once":
		return machine.Step{Kind: machine.StepPause, Failure: &machine.AttemptFailure{Code: id(1), Message: strings.Join(words[2:], " ")}, Unretryable: true, Attempts: 3}
	case "retry": // retry attempts code message
		return machine.Step{Kind: machine.StepRetry, Failure: &machine.AttemptFailure{Code: id(2), Message: strings.Join(words[3:], " ")}, Attempts: id(1)}
	case "because": // because cause step…
		s := w.step(a, words[2:])
		s.Cause = uint64(id(1))
		return s
	case "yield":
		return machine.Step{Kind: machine.StepYield}
	case "raw": // raw type: a command with an undecodable payload
		return machine.Step{Kind: machine.StepCommand, Type: journal.Type(number(a, arg(1))), Payload: []byte{0xff}}
	}
	a.d.Fatalf(a.t, "unknown step %s", words[0])
	return machine.Step{}
}

func result(a arguments, words []string) journal.Result {
	if len(words) > 1 && words[0] == "failure" {
		return journal.Result{Failure: &journal.Failure{Code: uint32(number(a, words[1])), Message: strings.Join(words[2:], " ")}}
	}
	return journal.Result{Value: []byte(strings.Join(words, " "))}
}

// suspend parses "completion… s17… name…", or a combinator followed by these, which makes a
// tree with the cancel beside it. Words after "/" are a race nested in it.
func suspend(a arguments, words []string) machine.Step {
	combinators := map[string]journal.Combinator{
		"all": journal.CombineAllCompleted, "all-ok": journal.CombineAllSucceededOrFirstFailed, "any-ok": journal.CombineFirstSucceededOrAllFailed,
	}
	root := journal.Future{Signals: []uint32{journal.CancelSignal}, Combinator: journal.CombineFirstCompleted}
	node := &root
	if combinator, tree := combinators[words[0]]; tree {
		root.Nested = []journal.Future{{Combinator: combinator}}
		node, words = &root.Nested[0], words[1:]
	}
	for _, word := range words {
		switch signal, numbered := strings.CutPrefix(word, "s"); {
		case word == "/":
			node.Nested = append(node.Nested, journal.Future{Combinator: journal.CombineFirstCompleted})
			node = &node.Nested[len(node.Nested)-1]
		case word[0] >= '0' && word[0] <= '9':
			node.Completions = append(node.Completions, uint32(number(a, word)))
		case numbered && signal[0] >= '0' && signal[0] <= '9':
			node.Signals = append(node.Signals, uint32(number(a, signal)))
		default:
			node.Names = append(node.Names, word)
		}
	}
	return machinetest.SuspendOn(root)
}
