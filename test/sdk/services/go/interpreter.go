package main

import (
	"encoding/json"
	"errors"

	restate "github.com/restatedev/sdk-go"

	"platform/test/sdk/contract"
)

// interpreterObject carries out programs, to combine awaits in any way.
func interpreterObject(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("GoInterpreter", opts...).
		Handler("run", restate.NewObjectHandler(runProgram))
}

// interpreter is one run of a program.
type interpreter struct {
	ctx  restate.ObjectContext
	id   string
	kept map[string]*node // what start began, by name
}

func runProgram(ctx restate.ObjectContext, in contract.Program) ([]contract.Outcome, error) {
	p := &interpreter{ctx: ctx, id: in.ID, kept: map[string]*node{}}
	out := make([]contract.Outcome, len(in.Commands))
	for i, c := range in.Commands {
		var err error
		if out[i], err = p.command(c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// command carries out one command and returns what it came to.
func (p *interpreter) command(c contract.Command) (contract.Outcome, error) {
	switch c.Do {
	case "start":
		n, err := p.begin(c.Of[0])
		p.kept[c.Name] = n
		return contract.Outcome{}, err
	case "await":
		return p.command(c.Of[0])
	case "id":
		return contract.Outcome{}, tell(p.ctx, "id", p.id+"-"+c.Name, p.ctx.Request().ID)
	case "set":
		restate.Set(p.ctx, c.Name, c.Value)
		return contract.Outcome{}, nil
	case "get":
		v, err := restate.Get[string](p.ctx, c.Name)
		return contract.Outcome{Value: v}, err
	case "fail":
		return contract.Outcome{}, restate.ToTerminalError(errors.New(c.Message), restate.WithErrorCode(restate.Code(c.Code)))
	}
	n, err := p.begin(c)
	if err != nil {
		return contract.Outcome{}, err
	}
	return p.await(n)
}

// begin makes what the command awaits, without awaiting it.
func (p *interpreter) begin(c contract.Command) (*node, error) {
	ctx := p.ctx
	switch c.Do {
	case "wait":
		return p.kept[c.Name], nil
	case "sleep":
		f := restate.After(ctx, millis(c.Millis))
		return leaf(f, func() contract.Outcome { return outcome("slept", f.Done()) }), nil
	case "run":
		f := restate.RunAsync(ctx, func(restate.RunContext) (string, error) {
			if c.Code != 0 {
				return "", restate.ToTerminalError(errors.New(c.Message), restate.WithErrorCode(restate.Code(c.Code)))
			}
			return c.Value, nil
		})
		return leaf(f, func() contract.Outcome { return outcome(f.Result()) }), nil
	case "awakeable":
		f := restate.Awakeable[string](ctx)
		return leaf(f, func() contract.Outcome { return outcome(f.Result()) }), tell(ctx, "publish", p.id+"-"+c.Name, f.Id())
	case "signal":
		f := restate.Signal[string](ctx, c.Name)
		return leaf(f, func() contract.Outcome { return outcome(f.Result()) }), nil
	case "call":
		f := client(ctx, *c.Call).RequestFuture(c.Call.Input)
		return leaf(f, func() contract.Outcome {
			raw, err := f.Response()
			var text string
			_ = json.Unmarshal(raw, &text)
			return outcome(text, err)
		}), nil
	case "all", "settled", "any", "first":
		n := &node{kind: c.Do}
		for _, part := range c.Of {
			child, err := p.begin(part)
			if err != nil {
				return nil, err
			}
			n.of = append(n.of, child)
		}
		return n, nil
	}
	return nil, restate.TerminalErrorf("unknown command %q", c.Do)
}

// await waits until the node is decided. The SDK waits for the first of a list
// only, so every step asks for one more of the leaves that are still open.
func (p *interpreter) await(n *node) (contract.Outcome, error) {
	for {
		if o, decided := n.decide(); decided {
			return o, nil
		}
		open := n.open(nil)
		futures := make([]restate.Future, len(open))
		for i, l := range open {
			futures[i] = l.future
		}
		first, err := restate.WaitFirst(p.ctx, futures...)
		if err != nil {
			return contract.Outcome{}, err
		}
		for _, l := range open {
			if l.future == first {
				l.take()
			}
		}
	}
}
