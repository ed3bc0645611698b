package invoker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/invoker/discovery"
	"platform/metadata"
	"platform/partition/machine"
	"platform/test/harness/ports"
)

// greeterService and counterService are what users of the Go SDK write.
type greeterService struct{}

func (greeterService) ServiceName() string { return "Greeter" }

func (greeterService) Greet(_ restate.Context, name string) (string, error) {
	return "Hello " + name, nil
}

func (greeterService) Steps(ctx restate.Context, n int) (int, error) {
	sum := 0
	for i := range n {
		v, err := restate.Run(ctx, func(restate.RunContext) (int, error) { return i, nil })
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func (greeterService) Nap(ctx restate.Context, millis int) (string, error) {
	if err := restate.Sleep(ctx, time.Duration(millis)*time.Millisecond); err != nil {
		return "", err
	}
	return "rested", nil
}

func (greeterService) Count(ctx restate.Context, key string) (int, error) {
	restate.ObjectSend(ctx, "Counter", key, "Add").Send(40)
	return restate.Object[int](ctx, "Counter", key, "Add").Request(2)
}

func (greeterService) Refuse(restate.Context) error {
	return restate.ToTerminalError(fmt.Errorf("no"), restate.WithErrorCode(418))
}

func (greeterService) Nope(ctx restate.Context) (string, error) {
	return restate.Service[string](ctx, "Greeter", "Refuse").Request(restate.Void{})
}

type counterService struct{}

func (counterService) ServiceName() string { return "Counter" }

func (counterService) Add(ctx restate.ObjectContext, n int) (int, error) {
	sum, err := restate.Get[int](ctx, "sum")
	if err != nil {
		return 0, err
	}
	restate.Set(ctx, "sum", sum+n)
	return sum + n, nil
}

// serveSDK serves the services with the Go SDK and returns the address. With keys it accepts only
// signed requests.
func serveSDK(t testing.TB, keys ...string) string {
	uri, stop := startSDK(keys...)
	t.Cleanup(stop)
	return uri
}

// newSDK has the services bound.
func newSDK() *server.Restate {
	return server.NewRestate().WithLogger(slog.DiscardHandler, true).
		Bind(restate.Reflect(greeterService{})).
		Bind(restate.Reflect(counterService{}))
}

func startSDK(keys ...string) (uri string, stop func()) {
	port, err := ports.Reserve()
	if err != nil {
		panic(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	services := newSDK()
	if len(keys) > 0 {
		services.WithIdentityV1(keys...)
	}
	go func() { ended <- services.Start(ctx, addr) }()
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			break
		}
		runtime.Gosched()
	}
	return "http://" + addr + "/", func() {
		cancel()
		<-ended
	}
}

// withSDK starts a session for a served SDK, as discovery found it.
func withSDK(t testing.TB, cfg Config, uri string, change func(*metadata.Deployment)) *bench {
	return withDeployment(t, cfg, discovery.Request{URI: uri}, change)
}

func withDeployment(t testing.TB, cfg Config, r discovery.Request, change func(*metadata.Deployment)) *bench {
	b := newBench(t, cfg, r.URI)
	find := discovery.DefaultConfig()
	find.Identity = cfg.Identity
	d, err := discovery.New(b.iv.Client(), find).Discover(t.Context(), r)
	require.NoError(t, err)
	d.ID = testDeployment
	if change != nil {
		change(d)
	}
	schemas := &metadata.Schemas{Deployments: map[ids.Deployment]*metadata.Deployment{d.ID: d}, Services: map[string]*metadata.Service{}}
	for _, s := range d.Services {
		s.Deployment = d.ID
		schemas.Services[s.Name] = s
	}
	b.mu.Lock()
	b.schemas = schemas
	b.mu.Unlock()
	return b
}

func greet(handler string) machine.Target {
	return machine.Target{Service: "Greeter", Handler: handler, Type: target.Service}
}

func TestGoSDK(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*metadata.Deployment)
		v7     bool
	}{
		{"version 6", nil, false},
		{"version 5", func(d *metadata.Deployment) { d.MaxProtocol = 5 }, false},
		{"version 7", nil, true},
		{"request-response", func(d *metadata.Deployment) { d.Bidirectional = false }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := quickConfig()
			cfg.EnableV7 = c.v7
			cfg.Defaults.InactivityTimeout = 100 * time.Millisecond
			b := withSDK(t, cfg, serveSDK(t), c.change)
			n := byte(0)
			call := func(handler, input, want string) {
				t.Helper()
				n++
				_, ended := b.shard.call(greet(handler), n, input)
				r := receive(t, ended)
				require.Nil(t, r.Failure)
				require.Equal(t, want, string(r.Value))
			}
			call("Greet", `"you"`, `"Hello you"`)
			call("Steps", `10`, `45`)
			call("Nap", `20`, `"rested"`)
			call("Nap", `300`, `"rested"`)
			call("Count", `"k"`, `42`)
			call("Count", `"k"`, `84`)
			n++
			_, ended := b.shard.call(greet("Nope"), n, ``)
			f := receive(t, ended).Failure
			require.EqualValues(t, 418, f.Code)
			require.Equal(t, "no", f.Message)
		})
	}
}
