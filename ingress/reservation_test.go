package ingress

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/budget"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/partition/machine"
)

// over returns a client that speaks HTTP/1.1 or HTTP/2 on one connection at a time.
func over(t *testing.T, http2 bool) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// serving serves the ingress on a port of its own.
func serving(t *testing.T, cfg Config, f *fakeInvocations) (url string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := testServer(t, cfg, f)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return "http://" + ln.Addr().String()
}

func TestBodiesBeyondTheBudgetAreRejected(t *testing.T) {
	const mib = 1 << 20
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		for form, announced := range map[string]bool{"announced": true, "chunked": false} {
			t.Run(name+", "+form, func(t *testing.T) {
				begun, finish := make(chan struct{}, 1), make(chan struct{})
				f := &fakeInvocations{call: func(_ context.Context, inv *machine.Invoke) (routing.Response, error) {
					if len(inv.Input) > 2*mib {
						begun <- struct{}{}
						<-finish
					}
					return routing.Response{}, nil
				}}
				bodies := budget.New(8*mib, 4*mib)
				url := serving(t, Config{Budget: bodies}, f) + "/Greeter/greet"
				client := over(t, http2)
				post := func(size int) (status int, code string) {
					var body io.Reader = bytes.NewReader(make([]byte, size))
					if !announced {
						body = io.MultiReader(body)
					}
					answer, err := client.Post(url, "", body)
					if err != nil {
						return 0, err.Error()
					}
					defer answer.Body.Close()
					if answer.StatusCode == http.StatusOK {
						return answer.StatusCode, ""
					}
					var problem errorBody
					_ = json.NewDecoder(answer.Body).Decode(&problem)
					return answer.StatusCode, string(problem.Platform) + " " + answer.Header.Get("Retry-After")
				}
				var large sync.WaitGroup
				count := 1
				if !http2 { // which has a connection for each
					count = 2
				}
				for range count {
					large.Go(func() {
						if status, why := post(3 * mib); status != http.StatusOK {
							t.Error(status, why)
						}
					})
					<-begun
				}
				status, why := post(3 * mib)
				if status, why := post(1000); status != http.StatusOK {
					t.Error("small bodies find room:", status, why)
				}
				close(finish)
				large.Wait()
				require.Equal(t, http.StatusServiceUnavailable, status, why)
				require.Equal(t, "RT0026 1", why)
				require.Eventually(t, func() bool { used, _ := bodies.Stats(); return used == 0 }, time.Minute, time.Millisecond)
			})
		}
	}
}

// A call that waits for its result does not hold the memory of its request.
func TestAWaitingCallHoldsNoMemoryOnceItIsStored(t *testing.T) {
	const size = 3 << 20
	begun, finish := make(chan struct{}), make(chan struct{})
	f := &fakeInvocations{
		stored: func(inv *machine.Invoke) bool { return len(inv.Input) >= size },
		call: func(context.Context, *machine.Invoke) (routing.Response, error) {
			begun <- struct{}{}
			<-finish
			return routing.Response{}, nil
		},
	}
	bodies := budget.New(4<<20, 4<<20)
	url := serving(t, Config{Budget: bodies}, f) + "/Greeter/greet"
	client := over(t, true)
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			answer, err := client.Post(url, "", bytes.NewReader(make([]byte, size)))
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Error(answer, err)
				begun <- struct{}{}
				return
			}
			_ = answer.Body.Close()
		})
		<-begun
	}
	used, _ := bodies.Stats()
	require.Zero(t, used)
	close(finish)
	calls.Wait()
	used, rejected := bodies.Stats()
	require.Zero(t, used)
	require.Zero(t, rejected)
}

// The memory of a response is held until the client has read it; the connection of a client that
// does not read is closed.
func TestAResponseThatIsNotReadIsAborted(t *testing.T) {
	const size = 8 << 20
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			bodies := budget.New(64<<20, 64<<20)
			f := &fakeInvocations{call: func(context.Context, *machine.Invoke) (routing.Response, error) {
				var a routing.Response
				a.Result.Value = make([]byte, size)
				return a, nil
			}}
			url := serving(t, Config{Budget: bodies, writeTimeout: 100 * time.Millisecond}, f) + "/Greeter/greet"
			answer, err := over(t, http2).Post(url, "", nil)
			require.NoError(t, err)
			defer answer.Body.Close()
			require.Eventually(t, func() bool { used, _ := bodies.Stats(); return used == 0 }, time.Minute, time.Millisecond)
			_, err = io.Copy(io.Discard, answer.Body)
			require.Error(t, err)
		})
	}
}

// Results that clients read by attaching are rejected while there is no memory for them.
func TestAResultBeyondTheBudgetIsRejected(t *testing.T) {
	const size = 6 << 20 // more than the client accepts without reading
	f := &fakeInvocations{attach: func(context.Context, ids.Invocation) (routing.Response, error) {
		var a routing.Response
		a.Result.Value = make([]byte, size)
		return a, nil
	}}
	bodies := budget.New(8<<20, 8<<20)
	url := serving(t, Config{Budget: bodies}, f) + "/platform/attach/" + newID(machine.Target{Service: "Greeter", Handler: "greet"}, nil, "", rand.Uint64, time.Now()).String()
	client := over(t, true)
	first, err := client.Get(url)
	require.NoError(t, err)
	defer first.Body.Close()
	require.Equal(t, http.StatusOK, first.StatusCode)
	second, err := client.Get(url)
	require.NoError(t, err)
	defer second.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, second.StatusCode)
	require.Equal(t, "1", second.Header.Get("Retry-After"))
	_, err = io.Copy(io.Discard, first.Body)
	require.NoError(t, err)
	require.Eventually(t, func() bool { used, _ := bodies.Stats(); return used == 0 }, time.Minute, time.Millisecond)
	third, err := client.Get(url)
	require.NoError(t, err)
	defer third.Body.Close()
	require.Equal(t, http.StatusOK, third.StatusCode)
}

// goroutineIn reports whether a goroutine executes a function.
func goroutineIn(function string) bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(function))
}

// Results of calls wait for memory as IDs: they are dropped and read again.
func TestResultsOfCallsWaitForMemory(t *testing.T) {
	const size, most = 6 << 20, 10 << 20 // the client accepts less without reading
	result := func(id ids.Invocation) routing.Response {
		a := routing.Response{ID: id, Target: machine.Target{Service: "Greeter", Handler: "greet"}}
		a.Result.Value = make([]byte, size)
		return a
	}
	read := make(chan struct{}, 10)
	f := &fakeInvocations{
		call: func(_ context.Context, inv *machine.Invoke) (routing.Response, error) { return result(inv.ID), nil },
		output: func(_ context.Context, id ids.Invocation) (routing.Response, error) {
			read <- struct{}{}
			return result(id), nil
		},
	}
	bodies := budget.New(most*4/5, most*4/5)
	url := serving(t, Config{Budget: bodies, resultTimeout: time.Hour}, f) + "/Greeter/greet"
	client := over(t, true)
	first, err := client.Post(url, "", nil)
	require.NoError(t, err)
	defer first.Body.Close()

	second := make(chan int64, 1)
	go func() {
		answer, err := client.Post(url, "", nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Error(answer, err)
			second <- 0
			return
		}
		n, _ := io.Copy(io.Discard, answer.Body)
		second <- n
	}()
	require.Eventually(t, func() bool { return goroutineIn("(*Account).AwaitResponse") }, time.Minute, time.Millisecond)
	used, _ := bodies.Stats()
	require.LessOrEqual(t, used, int64(most))
	require.Empty(t, read, "there is no memory for it yet")
	n, err := io.Copy(io.Discard, first.Body)
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	require.EqualValues(t, size, <-second)
	require.Len(t, read, 1)
	require.Eventually(t, func() bool { used, _ := bodies.Stats(); return used == 0 }, time.Minute, time.Millisecond)
}

// If there is no memory for the result of a call in time, the response says where to get the
// result.
func TestAResultWithoutMemoryIsKept(t *testing.T) {
	const size = 6 << 20
	f := &fakeInvocations{call: func(_ context.Context, inv *machine.Invoke) (routing.Response, error) {
		a := routing.Response{ID: inv.ID}
		a.Result.Value = make([]byte, size)
		return a, nil
	}}
	bodies := budget.New(8<<20, 8<<20)
	url := serving(t, Config{Budget: bodies, resultTimeout: time.Millisecond}, f) + "/Greeter/greet"
	client := over(t, true)
	first, err := client.Post(url, "", nil)
	require.NoError(t, err)
	defer first.Body.Close()
	second, err := client.Post(url, "", nil)
	require.NoError(t, err)
	defer second.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, second.StatusCode)
	id := second.Header.Get("x-platform-id")
	require.NotEmpty(t, id)
	require.Empty(t, second.Header.Get("retry-after"), "a repeated call would run again")
	var problem errorBody
	require.NoError(t, json.NewDecoder(second.Body).Decode(&problem))
	require.EqualValues(t, "RT0026", problem.Platform)
	require.Contains(t, problem.Message, "/platform/attach/"+id)
}

// A call that has ended is safe to repeat only with an idempotency key, even if the server cannot
// read its result again.
func TestACallWhoseResultCannotBeReadAgainIsNotReportedAsSafeToRetry(t *testing.T) {
	const size = 6 << 20
	f := &fakeInvocations{
		call: func(_ context.Context, inv *machine.Invoke) (routing.Response, error) {
			a := routing.Response{ID: inv.ID}
			a.Result.Value = make([]byte, size)
			return a, nil
		},
		output: func(context.Context, ids.Invocation) (routing.Response, error) {
			return routing.Response{}, &routing.UnavailableError{SafeToRetry: true}
		},
	}
	for _, key := range []string{"", "key"} {
		bodies := budget.New(8<<20, 8<<20)
		url := serving(t, Config{Budget: bodies, resultTimeout: time.Hour}, f) + "/Greeter/greet"
		client := over(t, true)
		first, err := client.Post(url, "", nil)
		require.NoError(t, err)
		defer first.Body.Close()

		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
		require.NoError(t, err)
		if key != "" {
			request.Header.Set("Idempotency-Key", key)
		}
		answered := make(chan *http.Response, 1)
		go func() {
			answer, err := client.Do(request)
			if err != nil {
				t.Error(err)
			}
			answered <- answer
		}()
		require.Eventually(t, func() bool { return goroutineIn("(*Account).AwaitResponse") }, time.Minute, time.Millisecond)
		_, err = io.Copy(io.Discard, first.Body)
		require.NoError(t, err)
		second := <-answered
		require.NotNil(t, second)
		defer second.Body.Close()
		require.Equal(t, http.StatusServiceUnavailable, second.StatusCode)
		var problem errorBody
		require.NoError(t, json.NewDecoder(second.Body).Decode(&problem))
		if key != "" {
			require.Equal(t, "1", second.Header.Get("Retry-After"))
			continue
		}
		require.Empty(t, second.Header.Get("Retry-After"), "a repeated call would run again")
		require.Contains(t, problem.Message, "/platform/attach/"+second.Header.Get("x-platform-id"))
	}
}
