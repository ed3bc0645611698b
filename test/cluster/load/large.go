package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"platform/test/harness"
	"platform/test/history"
)

const (
	kibi = 1 << 10
	mebi = 1 << 20

	// largeTimeout limits one request if there are large bodies: small ones may wait for them on a slow disk.
	largeTimeout = 90 * time.Second
	// storesPerRun is the number of objects with a large value.
	storesPerRun = 3
)

// largeCaller calls handlers with large inputs, results of steps, state and results, and checks each byte of the result.
type largeCaller struct {
	*client
	name  string
	store *store
	n     int
	errs  []error
}

// addLarge adds the clients with large bodies. What a node refuses, for example because bodies take too much memory, is
// repeated and no failure.
func (r *Run) addLarge() {
	var stores []*store
	for i := range min(r.cfg.Large, storesPerRun) {
		s := &store{ledger{service: "Store", key: r.name("store", i)}}
		r.checks = append(r.checks, s)
		stores = append(stores, s)
	}
	for i := range r.cfg.Large {
		c := r.newClient(anyNode)
		c.counts = &r.large
		w := &largeCaller{client: c, name: r.name("large", i), store: stores[i%len(stores)]}
		r.workers = append(r.workers, w)
		r.checks = append(r.checks, w)
	}
}

// step makes one call.
func (w *largeCaller) step(ctx context.Context) {
	w.n++
	in := largeInput(w.name + "." + strconv.Itoa(w.n))
	entry := history.Add{ID: in.ID, Position: -1, Span: history.Span{Start: time.Now()}}
	resp, err := w.retry(ctx, "large call "+in.ID, largeCall(harness.Path("Store", w.store.key, "put"), in))
	entry.Span.End = time.Now()
	if err == nil {
		entry.Position, err = largeResult(in, resp.Body)
	} else {
		entry.Outcome = history.Unknown
	}
	if err != nil {
		w.errs = append(w.errs, err)
	}
	w.store.record(entry)
}

func (w *largeCaller) check(context.Context, *client) error { return errors.Join(w.errs...) }

// store is a ledger that also has a large value.
type store struct{ ledger }

// check checks the entries and then removes all that the object has stored.
func (s *store) check(ctx context.Context, c *client) error {
	if err := s.ledger.check(ctx, c); err != nil {
		return err
	}
	_, err := c.retry(ctx, "clear "+s.key, call(harness.Path(s.service, s.key, "clear"), nil, ""))
	return err
}

// largeInput returns an input: one part of the call is large, and all of them fit into a journal.
func largeInput(id string) history.Blob {
	in := history.Blob{ID: id, Size: upTo(2 * mebi), Step: upTo(2 * mebi), Value: upTo(2 * mebi), Result: upTo(2 * mebi)}
	switch rand.IntN(5) {
	case 0:
		in.Size = mebi/2 + upTo(31*mebi)
	case 1:
		in.Step = mebi/2 + upTo(31*mebi)
	case 2:
		in.Value = mebi/2 + upTo(15*mebi) // it is also read by the next call
	case 3:
		in.Result = mebi/2 + upTo(31*mebi)
	}
	return in
}

// upTo returns a random size below limit; smaller ones are more likely.
func upTo(limit int) int { return int(float64(limit-kibi) * rand.Float64() * rand.Float64()) }

func largeCall(path string, in history.Blob) request {
	return func(ctx context.Context, c *harness.Client) (harness.Response, error) {
		return c.Call(ctx, path, in.Bytes(), "content-type", "application/octet-stream", "idempotency-key", in.ID)
	}
}

// largeResult checks a result and returns the position that it contains.
func largeResult(in history.Blob, body []byte) (int, error) {
	out, err := history.ParseBlob(body)
	if err == nil && (out.ID != in.ID+"/result" || out.Size != in.Result) {
		err = fmt.Errorf("corrupt: the result of %s is %s with %d instead of %d bytes", in.ID, out.ID, out.Size, in.Result)
	}
	return out.Seq, err
}
