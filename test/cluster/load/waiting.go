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

// invoker is a worker that makes one invocation after the other, repeats each request
// until it is answered, and checks each result by itself.
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

// result makes a call until it is answered and decodes its result.
func (w *invoker) result(ctx context.Context, path string, body []byte, key string, out any) error {
	answer, err := w.insist(ctx, path, call(path, body, key))
	if err != nil {
		return err
	}
	return answer.Decode(out)
}

// start sends an invocation until it is accepted and returns its id, which is the
// same however often it is sent.
func (w *invoker) start(ctx context.Context, path string, body []byte, key string) (string, error) {
	var ids [2]string
	for i := range ids {
		answer, err := w.insist(ctx, path, send(path, body, key))
		if err != nil {
			return "", err
		}
		var sent harness.Sent
		if err := answer.Decode(&sent); err != nil {
			return "", err
		}
		ids[i] = sent.InvocationID
	}
	if ids[0] != ids[1] {
		return "", fmt.Errorf("two ids for one idempotency key: %s and %s", ids[0], ids[1])
	}
	return ids[0], nil
}

// attached waits for the result of an invocation, twice, since results do not change.
func (w *invoker) attached(ctx context.Context, id string, out any) error {
	var bodies [2]string
	for i := range bodies {
		answer, err := w.insist(ctx, "attach", attach(id))
		if err != nil {
			return err
		}
		bodies[i] = string(answer.Body)
		if err := answer.Decode(out); err != nil {
			return err
		}
	}
	if bodies[0] != bodies[1] {
		return fmt.Errorf("the result of %s changed from %s to %s", id, bodies[0], bodies[1])
	}
	return nil
}

// stepsPerRun is how many steps byStepping takes.
const stepsPerRun = 6

// byStepping goes through steps that report each execution.
func byStepping(check func([]history.Execution, []string) error) func(context.Context, *invoker, string) error {
	return func(ctx context.Context, w *invoker, id string) error {
		body, err := json.Marshal(history.Run{ID: id, Steps: stepsPerRun})
		if err != nil {
			return err
		}
		invocation, err := w.start(ctx, harness.Path("Stepper", "run"), body, id)
		if err != nil {
			return err
		}
		var output []string
		if err := w.attached(ctx, invocation, &output); err != nil {
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

// room is an object that lets one in at a time.
type room struct {
	key     string
	results *harness.Recorder

	mu    sync.Mutex // covers stays
	stays []history.Section
}

// enter goes into the room and out of it.
func (r *room) enter(ctx context.Context, w *invoker, id string) error {
	var stay history.Section
	err := w.result(ctx, harness.Path("Exclusive", r.key, "work"), nil, id, &stay)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stays = append(r.stays, stay)
	}
	return err
}

func (r *room) check(context.Context, *client) error {
	var passages []history.SectionEvent
	err := decodeAll(r.results.Values("exclusive-"+r.key), &passages)
	if err == nil {
		err = history.CheckExclusive(passages, r.stays)
	}
	if err != nil {
		return fmt.Errorf("room %s: %w", r.key, err)
	}
	return nil
}

// byNapping sleeps a little, and by slack less than that at most.
func byNapping(slack time.Duration) func(context.Context, *invoker, string) error {
	return func(ctx context.Context, w *invoker, id string) error {
		asked := time.Duration(1+rand.IntN(600)) * time.Millisecond
		var nap history.Sleep
		err := w.result(ctx, harness.Path("Waiting", "sleep"), strconv.AppendInt(nil, int64(asked), 10), id, &nap)
		if err != nil {
			return err
		}
		nap.Requested -= slack
		return nap.Check()
	}
}

// byWord lets an invocation wait for a word and gives it two.
func byWord(ctx context.Context, w *invoker, id string) error {
	invocation, err := w.start(ctx, harness.Path("Waiting", "awakeable"), quote(id), id)
	if err != nil {
		return err
	}
	published := w.results.Await(ctx, id, 1, w.patience)
	if len(published) == 0 {
		return errors.New("no awakeable was published")
	}
	for _, word := range []string{"first", "second"} {
		if err := w.resolve(ctx, published[0], word); err != nil {
			return err
		}
	}
	var got string
	if err := w.attached(ctx, invocation, &got); err != nil {
		return err
	}
	if got != "first" {
		return fmt.Errorf("the first word is forgotten: got %q", got)
	}
	return nil
}

// resolve resolves an awakeable. That it is resolved already is no failure.
func (w *invoker) resolve(ctx context.Context, awakeable, word string) error {
	_, err := w.insist(ctx, "resolve", func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		answer, err := c.Post(ctx, "platform/awakeables/"+awakeable+"/resolve", quote(word))
		if err == nil && answer.Status == http.StatusNotFound && word != "first" {
			answer.Status = http.StatusAccepted // whoever waited is gone
		}
		return answer, err
	})
	return err
}

// byOrdering runs a workflow, which waits for a promise and then adds to the ledger.
func byOrdering(l *ledger) func(context.Context, *invoker, string) error {
	return func(ctx context.Context, w *invoker, id string) error {
		entry := history.Add{ID: id, Position: -1, Span: history.Span{Start: time.Now()}, Async: true, Outcome: history.Unknown}
		defer func() { l.note(entry) }()
		invocation, err := w.start(ctx, harness.Path("Order", id, "run"), quote(l.key), "")
		if err != nil {
			return err
		}
		entry.Outcome = history.OK // it is accepted, and will be done
		if err := w.confirm(ctx, id); err != nil {
			return err
		}
		var got string
		if err := w.attached(ctx, invocation, &got); err != nil {
			return err
		}
		if got != "go" {
			return fmt.Errorf("confirmed with go, got %q", got)
		}
		return nil
	}
}

// confirm resolves the promise of a workflow. That an earlier try has done so is no
// failure.
func (w *invoker) confirm(ctx context.Context, id string) error {
	_, err := w.insist(ctx, "confirm", func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		answer, err := c.Call(ctx, harness.Path("Order", id, "confirm"), quote("go"))
		if err == nil && answer.Status == http.StatusConflict {
			answer.Status = http.StatusOK
		}
		return answer, err
	})
	return err
}
