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

// reader reads registers past their service: from the state that the server has, with
// one request each. It is at home at a node, and stays there whatever is done to it.
type reader struct {
	*client
	id   int
	to   *registers
	read func(key string) request
	// value finds the register in an answer.
	value func(harness.Response) (int, error)
}

func (r *reader) step(ctx context.Context) {
	key, number := r.to.next()
	a := history.Access{Client: r.id}
	a.Span.Start = time.Now()
	answer, err := r.once(ctx, "read", r.read(key))
	a.Span.End = time.Now()
	if err == nil {
		a.Got, err = r.value(answer)
	}
	a.Outcome = history.OK
	if err != nil {
		a.Outcome = history.Failed
	}
	r.to.note(number, a)
}

// stateOf reads the state of a register with the admin API.
func stateOf(key string) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		return c.State(ctx, "Register", key)
	}
}

func valueInState(answer harness.Response) (int, error) {
	var body struct {
		State []struct {
			Key  string `json:"key"`
			Text string `json:"value_utf8"`
		} `json:"state"`
	}
	if err := answer.Decode(&body); err != nil {
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

func valueInRows(answer harness.Response) (int, error) {
	var result struct {
		Rows []struct {
			Value string `json:"value_utf8"`
		} `json:"rows"`
	}
	if err := answer.Decode(&result); err != nil || len(result.Rows) == 0 {
		return 0, err
	}
	return strconv.Atoi(result.Rows[0].Value)
}

// outputs are invocations whose results several workers look for.
type outputs struct {
	name string

	mu  sync.Mutex // covers what follows
	ids []string
	all map[string][]history.Access // an invocation is a register that becomes 1
}

const outputReads = 100 // of one invocation

// current is the invocation that is looked for, "" if there is none.
func (o *outputs) current() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.ids) == 0 {
		return ""
	}
	return o.ids[len(o.ids)-1]
}

func (o *outputs) begin(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = append(o.ids, id)
}

func (o *outputs) note(id string, a history.Access) {
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

// finisher sends one invocation after the other and waits for each.
type finisher struct {
	*client
	to   *outputs
	turn int
}

func (f *finisher) step(ctx context.Context) {
	f.turn++
	body, _ := json.Marshal(history.Change{Value: f.turn}) // a number only
	path := harness.Path("Register", fmt.Sprintf("%s-%d", f.to.name, f.turn%4), "change")
	begin := time.Now()
	answer, err := f.insist(ctx, "send", send(path, body, fmt.Sprintf("%s-%d", f.to.name, f.turn)))
	var sent harness.Sent
	if err != nil || answer.Decode(&sent) != nil {
		return
	}
	f.to.begin(sent.InvocationID)
	a := history.Access{Client: -1, Change: &history.Change{Value: 1}, Got: 1, Outcome: history.Unknown}
	if _, err := f.insist(ctx, "attach", attach(sent.InvocationID)); err == nil {
		a.Outcome = history.OK
	}
	a.Span = history.Span{Start: begin, End: time.Now()}
	f.to.note(sent.InvocationID, a)
}

// looker looks for the result of the latest invocation at one node.
type looker struct {
	*client
	id int
	to *outputs
}

// notReady is the status of an invocation that has no result yet.
const notReady = 470

func (l *looker) step(ctx context.Context) {
	id := l.to.current()
	if id == "" {
		return
	}
	a := history.Access{Client: l.id, Outcome: history.OK}
	a.Span.Start = time.Now()
	_, err := l.once(ctx, "output", func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		answer, err := c.Output(ctx, id)
		if err == nil && answer.Status == notReady {
			return harness.Response{Status: http.StatusOK}, nil
		}
		a.Got = 1
		return answer, err
	})
	a.Span.End = time.Now()
	if err != nil {
		var s *statusError
		if errors.As(err, &s) && s.status/100 != 5 {
			return // another answer than it should have, which is in the tally
		}
		a.Outcome = history.Failed
	}
	l.to.note(id, a)
}

// addReaders adds those who read past the services, at home at each node.
func (r *Run) addReaders(to *registers) {
	kinds := []struct {
		read  func(string) request
		value func(harness.Response) (int, error)
	}{{stateOf, valueInState}, {strongQuery, valueInRows}}
	id := firstReader
	for node := range r.cfg.Nodes.Clients {
		for _, kind := range kinds {
			r.workers = append(r.workers, &reader{client: r.client(node), id: id, to: to, read: kind.read, value: kind.value})
			id++
		}
	}
}

// firstReader is the first number of a reader, which is none of a registrar.
const firstReader = 100

// addOutputs adds those who wait for results and those who look for them.
func (r *Run) addOutputs() {
	to := &outputs{name: r.name("output", 0), all: map[string][]history.Access{}}
	r.checks = append(r.checks, to)
	r.workers = append(r.workers, &finisher{client: r.client(roaming), to: to})
	for node := range r.cfg.Nodes.Clients {
		r.workers = append(r.workers, &looker{client: r.client(node), id: node, to: to})
	}
}
