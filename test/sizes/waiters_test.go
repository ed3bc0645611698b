package sizes

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// valueSize is the size of the values that handlers wait for.
const valueSize = mebi

// waiterCount returns how many handlers wait: SIZES_WAITERS, or the default of the form.
func waiterCount(t *testing.T) int {
	if s := os.Getenv("SIZES_WAITERS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	if os.Getenv("SIZES_LONG") == "" {
		return 100
	}
	return 1000
}

// receivedValues are the values that handlers have received, by waiter.
type receivedValues struct {
	mu         sync.Mutex // covers the fields below
	sizes      map[int]int
	awakeables map[int]string
}

func newReceivedValues() *receivedValues {
	return &receivedValues{sizes: map[int]int{}, awakeables: map[int]string{}}
}

func (r *receivedValues) record(i int, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sizes[i] = len(value)
}

func (r *receivedValues) addAwakeable(i int, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awakeables[i] = id
}

// waiting returns the number of known awakeables.
func (r *receivedValues) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.awakeables)
}

// complete returns the number of waiters that received the whole value.
func (r *receivedValues) complete() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, size := range r.sizes {
		if size == valueSize {
			n++
		}
	}
	return n
}

// waitingServices are handlers that wait for a value in every supported way.
func waitingServices(r *receivedValues) []restate.ServiceDefinition {
	type attach struct {
		Waiter int
		ID     string
	}
	return []restate.ServiceDefinition{
		restate.NewWorkflow("Source").Handler("run", restate.NewWorkflowHandler(
			func(ctx restate.WorkflowContext, _ restate.Void) ([]byte, error) {
				if _, err := restate.Promise[bool](ctx, "go").Result(); err != nil {
					return nil, err
				}
				return make([]byte, valueSize), nil
			}, restate.WithBinary)).Handler("release", restate.NewWorkflowSharedHandler(
			func(ctx restate.WorkflowSharedContext, _ restate.Void) (restate.Void, error) {
				return restate.Void{}, restate.Promise[bool](ctx, "go").Resolve(true)
			})),
		restate.NewService("Attached").Handler("wait", restate.NewServiceHandler(
			func(ctx restate.Context, in attach) (restate.Void, error) {
				v, err := restate.AttachInvocation[[]byte](ctx, in.ID, restate.WithBinary).Response()
				if err == nil {
					r.record(in.Waiter, v)
				}
				return restate.Void{}, err
			})),
		restate.NewWorkflow("Promised").Handler("run", restate.NewWorkflowHandler(
			func(restate.WorkflowContext, restate.Void) (restate.Void, error) { return restate.Void{}, nil },
		)).Handler("wait", restate.NewWorkflowSharedHandler(
			func(ctx restate.WorkflowSharedContext, i int) (restate.Void, error) {
				v, err := restate.Promise[[]byte](ctx, "value", restate.WithBinary).Result()
				if err == nil {
					r.record(i, v)
				}
				return restate.Void{}, err
			})).Handler("resolve", restate.NewWorkflowSharedHandler(
			func(ctx restate.WorkflowSharedContext, _ restate.Void) (restate.Void, error) {
				return restate.Void{}, restate.Promise[[]byte](ctx, "value", restate.WithBinary).Resolve(make([]byte, valueSize))
			})),
		restate.NewService("Awakened").Handler("wait", restate.NewServiceHandler(
			func(ctx restate.Context, i int) (restate.Void, error) {
				a := restate.Awakeable[[]byte](ctx, restate.WithBinary)
				if _, err := restate.Run(ctx, func(restate.RunContext) (restate.Void, error) {
					r.addAwakeable(i, a.Id())
					return restate.Void{}, nil
				}); err != nil {
					return restate.Void{}, err
				}
				v, err := a.Result()
				if err == nil {
					r.record(i, v)
				}
				return restate.Void{}, err
			})),
	}
}

// newWaitingTestbed starts one server with the handlers above.
func newWaitingTestbed(t *testing.T) (*testbed, *receivedValues) {
	r := newReceivedValues()
	return newTestbed(t, 1, waitingServices(r)...), r
}

// send starts count handlers, 16 at a time.
func (b *testbed) send(ctx context.Context, count int, path func(i int) (string, []byte)) {
	b.concurrently(count, func(i int) error {
		p, body := path(i)
		resp, err := b.Nodes[0].Client.Send(ctx, p, body, "content-type", "application/json")
		if err == nil && resp.Status != http.StatusAccepted {
			err = fmt.Errorf("send to %s: %d %.200s", p, resp.Status, resp.Body)
		}
		return err
	})
}

// concurrently calls do for each number below count, 16 at a time.
func (b *testbed) concurrently(count int, do func(i int) error) {
	b.t.Helper()
	numbers := make(chan int)
	var g sync.WaitGroup
	for range 16 {
		g.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					b.t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	g.Wait()
	require.False(b.t, b.t.Failed())
}

// awaitBegun waits until count handlers of a service have started and are waiting.
func (b *testbed) awaitBegun(ctx context.Context, service string, count int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		n, ok := b.count(ctx, fmt.Sprintf("SELECT COUNT(*) AS n FROM sys_invocation WHERE target_service_name = '%s' AND journal_size > 1", service))
		return ok && n >= count
	}, 5*time.Minute, 500*time.Millisecond)
}

// awaitReceived waits until all handlers have received their value and logs the duration.
func (b *testbed) awaitReceived(r *receivedValues, count int) {
	b.t.Helper()
	begin := time.Now()
	require.Eventually(b.t, func() bool { return r.complete() == count }, 15*time.Minute, 100*time.Millisecond, "every waiter must receive the value")
	b.t.Logf("%d waiters got %d bytes each within %v", count, valueSize, time.Since(begin).Round(time.Millisecond))
	b.requireMemory()
}

func TestManyAttachToALargeResult(t *testing.T) {
	b, r := newWaitingTestbed(t)
	count, ctx := waiterCount(t), t.Context()
	source, err := b.Nodes[0].Client.Send(ctx, "Source/s/run", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, source.Status, "%s", source.Body)
	b.send(ctx, count, func(i int) (string, []byte) {
		return "Attached/wait", fmt.Appendf(nil, `{"Waiter":%d,"ID":%q}`, i, source.ID())
	})
	b.awaitBegun(ctx, "Attached", count)
	require.Equal(t, http.StatusOK, b.call(ctx, "Source/s/release", nil, "").Status)
	b.awaitReceived(r, count)
}

func TestManyWaitForALargePromise(t *testing.T) {
	b, r := newWaitingTestbed(t)
	count, ctx := waiterCount(t), t.Context()
	b.send(ctx, count, func(i int) (string, []byte) { return "Promised/p/wait", strconv.AppendInt(nil, int64(i), 10) })
	b.awaitBegun(ctx, "Promised", count)
	require.Equal(t, http.StatusOK, b.call(ctx, "Promised/p/resolve", nil, "").Status)
	b.awaitReceived(r, count)
}

func TestManyGetLargeSignals(t *testing.T) {
	b, r := newWaitingTestbed(t)
	count, ctx := waiterCount(t), t.Context()
	b.send(ctx, count, func(i int) (string, []byte) { return "Awakened/wait", strconv.AppendInt(nil, int64(i), 10) })
	require.Eventually(t, func() bool { return r.waiting() == count }, 5*time.Minute, 100*time.Millisecond)
	value := make([]byte, valueSize)
	b.concurrently(count, func(i int) error {
		return b.resolve(ctx, r.awakeables[i], value)
	})
	b.awaitReceived(r, count)
}

// resolve resolves an awakeable, with retries while the server is overloaded.
func (b *testbed) resolve(ctx context.Context, id string, value []byte) error {
	for {
		resp, err := b.Nodes[0].Client.Post(ctx, "platform/awakeables/"+id+"/resolve", value, "content-type", "application/octet-stream")
		switch {
		case err != nil:
			return err
		case resp.Status < http.StatusBadRequest:
			return nil
		case resp.Status < http.StatusInternalServerError:
			return fmt.Errorf("resolve: %d %.200s", resp.Status, resp.Body)
		}
		if !harness.Sleep(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
}
