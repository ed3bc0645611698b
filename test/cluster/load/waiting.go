package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"platform/test/harness"
	"platform/test/history"
)

// invoker is a worker that makes sequential invocations, retries each request until it
// succeeds, and checks each result.
type invoker struct {
	*client
	name    string
	results *harness.Recorder
	invoke  func(ctx context.Context, w *invoker, id string) error
	n       int
	errs    []error
}

func (w *invoker) step(ctx context.Context) {
	w.n++
	id := w.name + "." + strconv.Itoa(w.n)
	if err := w.invoke(ctx, w, id); err != nil {
		w.errs = append(w.errs, fmt.Errorf("%s: %w", id, err))
	}
}

func (w *invoker) check(context.Context, *client) error { return errors.Join(w.errs...) }

// result makes a call with retries and decodes its result.
func (w *invoker) result(ctx context.Context, path string, body []byte, key string, out any) error {
	resp, err := w.retry(ctx, path, call(path, body, key))
	if err != nil {
		return err
	}
	return resp.Decode(out)
}

// sendTwice sends an invocation twice and returns its id, which must be the same both
// times.
func (w *invoker) sendTwice(ctx context.Context, path string, body []byte, key string) (string, error) {
	var ids [2]string
	for i := range ids {
		resp, err := w.retry(ctx, path, send(path, body, key))
		if err != nil {
			return "", err
		}
		var sent harness.Sent
		if err := resp.Decode(&sent); err != nil {
			return "", err
		}
		ids[i] = sent.InvocationID
	}
	if ids[0] != ids[1] {
		return "", fmt.Errorf("two ids for one idempotency key: %s and %s", ids[0], ids[1])
	}
	return ids[0], nil
}

// attachTwice waits for the result of an invocation twice; the result must not change.
func (w *invoker) attachTwice(ctx context.Context, id string, out any) error {
	var bodies [2]string
	for i := range bodies {
		resp, err := w.retry(ctx, "attach", attach(id))
		if err != nil {
			return err
		}
		bodies[i] = string(resp.Body)
		if err := resp.Decode(out); err != nil {
			return err
		}
	}
	if bodies[0] != bodies[1] {
		return fmt.Errorf("the result of %s changed from %s to %s", id, bodies[0], bodies[1])
	}
	return nil
}

// stepsPerRun is the number of steps of invokeSteps.
const stepsPerRun = 6

// invokeSteps runs steps that report each execution.
func invokeSteps(check func([]history.Execution, []string) error) func(context.Context, *invoker, string) error {
	return func(ctx context.Context, w *invoker, id string) error {
		body, err := json.Marshal(history.Run{ID: id, Steps: stepsPerRun})
		if err != nil {
			return err
		}
		invocation, err := w.sendTwice(ctx, harness.Path("Stepper", "run"), body, id)
		if err != nil {
			return err
		}
		var output []string
		if err := w.attachTwice(ctx, invocation, &output); err != nil {
			return err
		}
		if len(output) != stepsPerRun {
			return fmt.Errorf("%d results of %d steps", len(output), stepsPerRun)
		}
		var executions []history.Execution
		if err := decodeAll(w.results.Values(id), &executions); err != nil {
			return err
		}
		return check(executions, output)
	}
}

func decodeAll[T any](records []string, out *[]T) error {
	for _, r := range records {
		var v T
		if err := json.Unmarshal([]byte(r), &v); err != nil {
			return fmt.Errorf("record %q: %w", r, err)
		}
		*out = append(*out, v)
	}
	return nil
}

// sectionWorker runs critical sections of one object.
type sectionWorker struct {
	key     string
	results *harness.Recorder

	mu       sync.Mutex // covers sections
	sections []history.Section
}

// work enters and leaves the critical section.
func (r *sectionWorker) work(ctx context.Context, w *invoker, id string) error {
	var section history.Section
	err := w.result(ctx, harness.Path("Exclusive", r.key, "work"), nil, id, &section)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sections = append(r.sections, section)
	}
	return err
}

func (r *sectionWorker) check(context.Context, *client) error {
	var events []history.SectionEvent
	err := decodeAll(r.results.Values("exclusive-"+r.key), &events)
	if err == nil {
		err = history.CheckExclusive(events, r.sections)
	}
	if err != nil {
		return fmt.Errorf("critical section %s: %w", r.key, err)
	}
	return nil
}

// invokeSleep sleeps durably; the sleep may be short by clockSlack.
func invokeSleep(clockSlack time.Duration) func(context.Context, *invoker, string) error {
	return func(ctx context.Context, w *invoker, id string) error {
		requested := time.Duration(1+rand.IntN(600)) * time.Millisecond
		var s history.Sleep
		err := w.result(ctx, harness.Path("Waiting", "sleep"), strconv.AppendInt(nil, int64(requested), 10), id, &s)
		if err != nil {
			return err
		}
		s.Requested -= clockSlack
		return s.Check()
	}
}

// invokeAwakeable resolves an awakeable twice; only the first value counts.
func invokeAwakeable(ctx context.Context, w *invoker, id string) error {
	invocation, err := w.sendTwice(ctx, harness.Path("Waiting", "awakeable"), quote(id), id)
	if err != nil {
		return err
	}
	published := w.results.Await(ctx, id, 1, w.retryTimeout)
	if len(published) == 0 {
		return errors.New("no awakeable was published")
	}
	for _, value := range []string{"first", "second"} {
		if err := w.resolve(ctx, published[0], value); err != nil {
			return err
		}
	}
	var got string
	if err := w.attachTwice(ctx, invocation, &got); err != nil {
		return err
	}
	if got != "first" {
		return fmt.Errorf("awakeable: got %q, want the first value", got)
	}
	return nil
}

// resolve resolves an awakeable. It is not an error if the awakeable is already resolved.
func (w *invoker) resolve(ctx context.Context, awakeable, value string) error {
	_, err := w.retry(ctx, "resolve", func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		resp, err := c.Post(ctx, "platform/awakeables/"+awakeable+"/resolve", quote(value))
		if err == nil && resp.Status == http.StatusNotFound && value != "first" {
			resp.Status = http.StatusAccepted // the invocation has completed
		}
		return resp, err
	})
	return err
}

// invokeWorkflow runs a workflow, which waits for a promise and then adds to the ledger.
func invokeWorkflow(l *ledger) func(context.Context, *invoker, string) error {
	return func(ctx context.Context, w *invoker, id string) error {
		entry := history.Add{ID: id, Position: -1, Span: history.Span{Start: time.Now()}, Async: true, Outcome: history.Unknown}
		defer func() { l.record(entry) }()
		invocation, err := w.sendTwice(ctx, harness.Path("Order", id, "run"), quote(l.key), "")
		if err != nil {
			return err
		}
		entry.Outcome = history.OK // accepted, so it will be added
		if err := w.confirm(ctx, id); err != nil {
			return err
		}
		var got string
		if err := w.attachTwice(ctx, invocation, &got); err != nil {
			return err
		}
		if got != "go" {
			return fmt.Errorf("workflow result: got %q, want go", got)
		}
		return nil
	}
}

// confirm resolves the promise of a workflow. It is not an error if an earlier attempt
// resolved it.
func (w *invoker) confirm(ctx context.Context, id string) error {
	_, err := w.retry(ctx, "confirm", func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		resp, err := c.Call(ctx, harness.Path("Order", id, "confirm"), quote("go"))
		if err == nil && resp.Status == http.StatusConflict {
			resp.Status = http.StatusOK
		}
		return resp, err
	})
	return err
}
