package invoker

import (
	"log/slog"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

// wire is a stream without a network, for tests that advance the time.
type wire struct {
	recv   endpoint.Receiver
	script func(*wire)

	mu       sync.Mutex // covers the fields below
	written  int
	ended    bool
	reset    bool
	finished bool
}

func (w *wire) run() {
	if req := w.recv.Begin(); req != nil {
		w.script(w)
	}
}

func (w *wire) head(status int, header http.Header) {
	w.recv.Response(endpoint.Head{Status: status, Header: header})
}

func (w *wire) ok() {
	w.head(200, http.Header{"Content-Type": {protocol.V6.ContentType()}})
}

func (w *wire) send(t testing.TB, text string) { w.recv.Data(unhex(t, text)) }

func (w *wire) Write(chunks ...[]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range chunks {
		w.written += len(p)
	}
}

func (w *wire) length() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written
}

func (w *wire) CloseWrite() { w.mark(&w.ended) }
func (w *wire) Finish()     { w.mark(&w.finished) }
func (w *wire) Reset()      { w.mark(&w.reset) }

func (w *wire) mark(what *bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*what = true
}

func (w *wire) is(what *bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *what
}

// offline is a session whose streams are wires. It runs inside a synctest bubble.
type offline struct {
	*bench
	mu    sync.Mutex // covers the fields below
	wires []*wire
	times []time.Time
}

func newOffline(t *testing.T, cfg Config, scripts ...func(*wire)) *offline {
	o := &offline{bench: &bench{t: t, cfg: cfg, schemas: testSchemas("http://nowhere/")}}
	o.iv = New(cfg, o, slog.New(slog.DiscardHandler))
	o.iv.open = func(r endpoint.Receiver) Stream {
		o.mu.Lock()
		defer o.mu.Unlock()
		w := &wire{recv: r, script: scripts[min(len(o.wires), len(scripts)-1)]}
		o.wires = append(o.wires, w)
		o.times = append(o.times, time.Now())
		go w.run()
		return w
	}
	o.shard = newShard(t)
	o.session = o.iv.openSession(o.shard)
	o.shard.session = o.session
	return o
}

func (o *offline) close() {
	o.session.Close()
	o.shard.stop()
	o.iv.Close()
}

// gaps are the times between attempts.
func (o *offline) gaps() (gaps []time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := 1; i < len(o.times); i++ {
		gaps = append(gaps, o.times[i].Sub(o.times[i-1]))
	}
	return gaps
}

func (o *offline) wire(i int) *wire {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wires[i]
}

func policy(attempts int, then metadata.OnMaxAttempts) Config {
	cfg := DefaultConfig()
	cfg.Defaults.Retry = metadata.RetryPolicy{
		InitialInterval: time.Second, Factor: 3, MaxInterval: 5 * time.Second, MaxAttempts: attempts, OnMaxAttempts: then,
	}
	return cfg
}

func fails(t testing.TB) func(*wire) {
	return func(w *wire) {
		w.ok()
		w.send(t, frame(protocol.Error, "08f403"+"12"+length("boom")))
	}
}

func TestRetriesFollowThePolicyAndPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(4, metadata.Pause)
		cfg.Level = func() feature.Level { return feature.Newest } // like that of the log
		o := newOffline(t, cfg, fails(t))
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		synctest.Wait()
		st, ok := o.iv.Status(id)
		require.True(t, ok)
		require.False(t, st.InFlight)
		require.Equal(t, 1, st.RetryCount)
		require.Equal(t, "boom", st.LastFailure.Message)
		require.Equal(t, testDeployment, st.Deployment)
		require.WithinRange(t, st.NextRetryAt, time.Now().Add(time.Second), time.Now().Add(1300*time.Millisecond))
		time.Sleep(time.Minute)
		synctest.Wait()
		gaps := o.gaps()
		require.Len(t, gaps, 3)
		for i, least := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second} {
			require.GreaterOrEqual(t, gaps[i], least)
			require.LessOrEqual(t, gaps[i], least*13/10)
		}
		inv := o.shard.record(id)
		require.Equal(t, machine.Paused, inv.Status)
		require.Equal(t, "boom", inv.Failure.Message)
		require.EqualValues(t, 4, inv.LastPause.Attempts)
		require.Equal(t, machine.Pin{}, inv.Pin, "nothing was stored, so the choice stays open")
		_, ok = o.iv.Status(id)
		require.False(t, ok)
	})
}

func TestLastAttemptKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(1, metadata.Kill), fails(t))
		defer o.close()
		_, ended := o.shard.call(greeter, 1, "")
		r := <-ended
		require.Equal(t, &journal.Failure{Code: 500, Message: "boom"}, r.Failure)
		require.Empty(t, o.gaps())
	})
}

func TestDelaysOfTheEndpointDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := func(w *wire) {
			w.head(503, http.Header{"Retry-After": {"7"}})
			w.recv.End(nil)
		}
		asks := func(w *wire) {
			w.ok()
			w.send(t, frame(protocol.Error, "08f403"+"40f02e")) // 6000 ms
		}
		o := newOffline(t, policy(2, metadata.Pause), busy, asks, busy, fails(t), fails(t))
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		time.Sleep(time.Minute)
		synctest.Wait()
		gaps := o.gaps()
		require.Equal(t, []time.Duration{7 * time.Second, 6 * time.Second, 7 * time.Second}, gaps[:3])
		require.Len(t, gaps, 4)
		require.Equal(t, machine.Paused, o.shard.record(id).Status)
	})
}

func TestVersion7ReportsTheNextAction(t *testing.T) {
	for behavior, then := range map[string]machine.Status{"4801": machine.Paused, "4802": machine.Completed} {
		synctest.Test(t, func(t *testing.T) {
			cfg := policy(10, metadata.Pause)
			cfg.EnableV7 = true
			o := newOffline(t, cfg, func(w *wire) {
				w.head(200, http.Header{"Content-Type": {protocol.V7.ContentType()}})
				w.send(t, frame(protocol.AwaitingOn, "0a050a01012801"))
				w.send(t, frame(protocol.Error, "08f403"+behavior))
			})
			defer o.close()
			id, _ := o.shard.call(greeter, 1, "")
			synctest.Wait()
			require.Equal(t, then, o.shard.record(id).Status)
			require.Empty(t, o.gaps())
		})
	}
}

func TestRetryCountIsReportedAndResetByACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r retryState
		p := &metadata.RetryPolicy{InitialInterval: time.Second, Factor: 2}
		for range 3 {
			_, again := r.next(&failure{reached: true}, p)
			require.True(t, again)
		}
		_, _ = r.next(&failure{}, p)
		require.EqualValues(t, 3, r.sinceEntry, "an attempt that never reached the endpoint does not count there")
		require.Equal(t, 4, r.total)
		task := &task{retry: r}
		task.storedLocked(&machine.Progress{Steps: []machine.Step{{Kind: machine.StepRunCompletion}}})
		require.EqualValues(t, 3, task.retry.sinceEntry)
		task.storedLocked(&machine.Progress{Steps: []machine.Step{{Kind: machine.StepCommand}}})
		require.Zero(t, task.retry.sinceEntry)
		require.Equal(t, 4, task.retry.failures, "the policy's count goes on")
	})
}

func TestDelaysNeverOverflow(t *testing.T) {
	var r retryState
	p := &metadata.RetryPolicy{InitialInterval: time.Hour, Factor: 1e300}
	for range 100 {
		d, again := r.next(&failure{}, p)
		require.True(t, again)
		require.Positive(t, d)
	}
}

// TestNoPolicyRetriesWithoutDelay has policies and endpoints that ask for a delay of 0.
func TestNoPolicyRetriesWithoutDelay(t *testing.T) {
	none := time.Duration(0)
	for name, f := range map[string]*failure{"policy": {}, "endpoint": {nextDelay: &none}} {
		for _, p := range []metadata.RetryPolicy{{}, {Factor: 1, MaxInterval: time.Hour}, {InitialInterval: time.Nanosecond, Factor: 1, MaxInterval: time.Nanosecond}} {
			var r retryState
			for range 10 {
				d, again := r.next(f, &p)
				require.True(t, again)
				require.GreaterOrEqual(t, d, minDelay, name)
				require.LessOrEqual(t, d, 2*minDelay, name)
			}
		}
	}
	attempts := make([]func(*wire), 101)
	for i := range attempts {
		attempts[i] = fails(t)
	}
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.Defaults.Retry = metadata.RetryPolicy{Factor: 1}
		o := newOffline(t, cfg, attempts...)
		defer o.close()
		o.shard.call(greeter, 1, "")
		time.Sleep(time.Second)
		synctest.Wait()
		require.LessOrEqual(t, len(o.gaps()), 100)
	})
}

func TestInactivityAndAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(1, metadata.Kill)
		cfg.Defaults.InactivityTimeout, cfg.Defaults.AbortTimeout = time.Minute, 10*time.Minute
		o := newOffline(t, cfg, func(w *wire) {
			w.ok()
			time.Sleep(50 * time.Second)
			w.send(t, frame(journal.Run, "5801")) // restarts both times
			time.Sleep(59 * time.Second)
			require.False(t, w.is(&w.ended))
			time.Sleep(2 * time.Second)
			require.True(t, w.is(&w.ended))
			time.Sleep(9 * time.Minute)
			w.send(t, frame(journal.Run, "5802"))
			time.Sleep(10*time.Minute - time.Second)
			require.False(t, w.is(&w.reset))
		})
		defer o.close()
		_, ended := o.shard.call(greeter, 1, "")
		r := <-ended
		require.Contains(t, r.Failure.Message, "10m0s")
		require.True(t, o.wire(0).is(&o.wire(0).reset))
	})
}

func TestRequestResponseHalfClosesImmediately(t *testing.T) {
	for name, change := range map[string]func(*offline){
		"announced": func(o *offline) { o.change(func(d *metadata.Deployment) { d.Bidirectional = false }) },
		"no inactivity": func(o *offline) {
			d := *o.iv.defaults.Load()
			d.InactivityTimeout = 0
			o.iv.SetDefaults(d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffline(t, policy(1, metadata.Kill), func(w *wire) {
					require.True(t, w.is(&w.ended))
					w.ok()
				})
				change(o)
				defer o.close()
				_, ended := o.shard.call(greeter, 1, "")
				at := time.Now()
				r := <-ended
				require.NotNil(t, r.Failure)
				require.Equal(t, 10*time.Minute, time.Since(at))
			})
		})
	}
}

func TestErrorStatusDoesNotWaitForItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(1, metadata.Kill), func(w *wire) {
			w.head(500, nil)
			require.True(t, w.is(&w.ended), "some endpoints send the body only after that")
			w.recv.Data([]byte("half"))
		})
		defer o.close()
		_, ended := o.shard.call(greeter, 1, "")
		at := time.Now()
		r := <-ended
		require.Equal(t, "the endpoint responded with status 500: half", r.Failure.Message)
		require.Equal(t, refusalTimeout, time.Since(at))
	})
}

func TestACommandWithoutEffectLingersBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(1, metadata.Kill), func(w *wire) {
			w.ok()
			w.send(t, frame(journal.Run, "5801"))
		})
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		synctest.Wait()
		require.Empty(t, o.shard.proposed())
		time.Sleep(lingerTime)
		synctest.Wait()
		require.Equal(t, []journal.Type{journal.Input, journal.Run}, o.shard.journal(id))
		require.Equal(t, machine.Pin{Deployment: testDeployment, Protocol: 6}, o.shard.record(id).Pin)
	})
}

func TestRunAndItsResultAreOneProposal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(1, metadata.Kill), func(w *wire) {
			w.ok()
			w.send(t, frame(journal.Run, "5801"))
			w.send(t, frame(protocol.ProposeRunCompletion, "0801720131"))
		})
		defer o.close()
		o.shard.call(greeter, 1, "")
		synctest.Wait()
		require.Equal(t, [][]machine.StepKind{{machine.StepCommand, machine.StepRunCompletion}}, o.shard.proposed())
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"120":                             2 * time.Minute,
		"Fri, 02 Jan 2026 03:05:05 GMT":   time.Minute,
		"Fri, 02 Jan 2026 04:04:35 +0100": 30 * time.Second,
	} {
		got := retryAfter(value, now)
		require.NotNil(t, got, value)
		require.Equal(t, want, *got, value)
	}
	for _, value := range []string{"", "0", "soon", "-1", "1.5", "99999999999", "Fri, 02 Jan 2026 03:04:05 GMT"} {
		require.Nil(t, retryAfter(value, now), value)
	}
}

func TestSlotsAreAssignedInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(1, metadata.Kill)
		cfg.ConcurrentInvocations = 2
		var mu sync.Mutex
		var order []string
		release := make(chan struct{})
		o := newOffline(t, cfg, func(w *wire) {
			mu.Lock()
			order = append(order, w.recv.(*attempt).t.id.String())
			mu.Unlock()
			<-release
			w.ok()
			w.send(t, outputHi+end)
		})
		defer o.close()
		var want []string
		var last chan journal.Result
		for n := range byte(50) {
			var id ids.Invocation
			id, last = o.shard.callAs(ids.NewInvocation(uint64(n), [16]byte{15: n + 1}), greeter, "")
			want = append(want, id.String())
			synctest.Wait()
		}
		mu.Lock()
		require.Equal(t, want[:2], order)
		mu.Unlock()
		// A waiting one that is aborted passes its slot to the next.
		cut, err := ids.ParseInvocation(want[10])
		require.NoError(t, err)
		o.session.Abort(&machine.Abort{ID: cut, Attempt: o.shard.record(cut).Attempt})
		want = append(want[:10], want[11:]...)
		for range want {
			release <- struct{}{}
			synctest.Wait()
		}
		<-last
		require.Equal(t, want, order)
		require.Zero(t, o.iv.slots.used)
	})
}

func TestFailedAttemptsAreReportedOnce(t *testing.T) {
	r := retryState{}
	require.Zero(t, r.report())
	r.next(&failure{}, &metadata.RetryPolicy{})
	r.next(&failure{}, &metadata.RetryPolicy{})
	require.EqualValues(t, 2, r.report())
	require.Zero(t, r.report())
	r.next(&failure{}, &metadata.RetryPolicy{})
	require.EqualValues(t, 1, r.report())
}

// A policy may ask for delays of up to 292 years, the longest duration.
func TestLongDelaysDoNotOverflow(t *testing.T) {
	p := &metadata.RetryPolicy{InitialInterval: math.MaxInt64, Factor: 2}
	var r retryState
	for range 100 {
		delay, again := r.next(&failure{}, p)
		require.True(t, again)
		require.GreaterOrEqual(t, delay, maxDelay)
	}
}
