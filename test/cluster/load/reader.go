package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"platform/test/harness"
	"platform/test/history"
)

// reader reads registers without their service, directly from the server's state, with
// one request each. It is pinned to a node.
type reader struct {
	*client
	id        int
	registers *registers
	read      func(key string) request
	// value extracts the value of the register from a response.
	value func(harness.Response) (int, error)
}

func (r *reader) step(ctx context.Context) {
	key, number := r.registers.next()
	a := history.Access{Client: r.id}
	a.Span.Start = time.Now()
	resp, err := r.try(ctx, "read", r.read(key))
	a.Span.End = time.Now()
	if err == nil {
		a.Got, err = r.value(resp)
	}
	a.Outcome = history.OK
	if err != nil {
		a.Outcome = history.Failed
	}
	r.registers.record(number, a)
}

// stateOf reads the state of a register with the admin API.
func stateOf(key string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		return c.State(ctx, "Register", key)
	}
}

func valueInState(resp harness.Response) (int, error) {
	var body struct {
		State []struct {
			Key  string `json:"key"`
			Text string `json:"value_utf8"`
		} `json:"state"`
	}
	if err := resp.Decode(&body); err != nil {
		return 0, err
	}
	for _, e := range body.State {
		if e.Key == "value" {
			return strconv.Atoi(e.Text)
		}
	}
	return 0, nil
}

// strongQuery reads a register with SQL.
func strongQuery(key string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		return c.StrongQuery(ctx, "SELECT value_utf8 FROM state WHERE service_name = 'Register' AND service_key = '"+key+"' AND key = 'value'")
	}
}

func valueInRows(resp harness.Response) (int, error) {
	var result struct {
		Rows []struct {
			Value string `json:"value_utf8"`
		} `json:"rows"`
	}
	if err := resp.Decode(&result); err != nil || len(result.Rows) == 0 {
		return 0, err
	}
	return strconv.Atoi(result.Rows[0].Value)
}

// outputs are invocations whose results several workers poll.
type outputs struct {
	name string

	mu  sync.Mutex // covers the fields below
	ids []string
	all map[string][]history.Access // an invocation is a register that changes from 0 to 1
}

const outputReads = 100 // maximum per invocation

// current returns the latest invocation, "" if there is none.
func (o *outputs) current() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.ids) == 0 {
		return ""
	}
	return o.ids[len(o.ids)-1]
}

func (o *outputs) start(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = append(o.ids, id)
}

func (o *outputs) record(id string, a history.Access) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all[id]) < outputReads || a.Change != nil {
		o.all[id] = append(o.all[id], a)
	}
}

func (o *outputs) check(context.Context, *client) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, accesses := range o.all {
		if err := history.CheckRegister(accesses); err != nil {
			return fmt.Errorf("output of %s: %w", id, err)
		}
	}
	return nil
}

// outputProducer sends invocations sequentially and waits for each.
type outputProducer struct {
	*client
	outputs    *outputs
	operations int
}

func (f *outputProducer) step(ctx context.Context) {
	f.operations++
	body, _ := json.Marshal(history.Change{Value: f.operations}) // cannot fail
	path := harness.Path("Register", fmt.Sprintf("%s-%d", f.outputs.name, f.operations%4), "change")
	begin := time.Now()
	resp, err := f.retry(ctx, "send", send(path, body, fmt.Sprintf("%s-%d", f.outputs.name, f.operations)))
	var sent harness.Sent
	if err != nil || resp.Decode(&sent) != nil {
		return
	}
	f.outputs.start(sent.InvocationID)
	a := history.Access{Client: -1, Change: &history.Change{Value: 1}, Got: 1, Outcome: history.Unknown}
	if _, err := f.retry(ctx, "attach", attach(sent.InvocationID)); err == nil {
		a.Outcome = history.OK
	}
	a.Span = history.Span{Start: begin, End: time.Now()}
	f.outputs.record(sent.InvocationID, a)
}

// outputPoller polls the result of the latest invocation at one node.
type outputPoller struct {
	*client
	id      int
	outputs *outputs
}

// notReady is the status of an invocation that has no result yet.
const notReady = 470

func (l *outputPoller) step(ctx context.Context) {
	id := l.outputs.current()
	if id == "" {
		return
	}
	a := history.Access{Client: l.id, Outcome: history.OK}
	a.Span.Start = time.Now()
	_, err := l.try(ctx, "output", func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		resp, err := c.Output(ctx, id)
		if err == nil && resp.Status == notReady {
			return harness.Response{Status: http.StatusOK}, nil
		}
		a.Got = 1
		return resp, err
	})
	a.Span.End = time.Now()
	if err != nil {
		var s *statusError
		if errors.As(err, &s) && s.status/100 != 5 {
			return // an unexpected response, which is in counts
		}
		a.Outcome = history.Failed
	}
	l.outputs.record(id, a)
}

// addDirectReaders adds readers pinned to each node.
func (r *Run) addDirectReaders(registers *registers) {
	kinds := []struct {
		read  func(string) request
		value func(harness.Response) (int, error)
	}{{stateOf, valueInState}, {strongQuery, valueInRows}}
	id := firstReader
	for node := range r.cfg.Nodes.Clients {
		for _, kind := range kinds {
			r.workers = append(r.workers, &reader{client: r.newClient(node), id: id, registers: registers, read: kind.read, value: kind.value})
			id++
		}
	}
}

// firstReader is the lowest client ID of a reader; the writers of registers have lower ones.
const firstReader = 100

// addOutputs adds a producer of outputs and pollers pinned to each node.
func (r *Run) addOutputs() {
	outputs := &outputs{name: r.name("output", 0), all: map[string][]history.Access{}}
	r.checks = append(r.checks, outputs)
	r.workers = append(r.workers, &outputProducer{client: r.newClient(anyNode), outputs: outputs})
	for node := range r.cfg.Nodes.Clients {
		r.workers = append(r.workers, &outputPoller{client: r.newClient(node), id: node, outputs: outputs})
	}
}
