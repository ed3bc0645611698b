package config

import (
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/errcode"
	"platform/internal/subscription"
	"platform/internal/units"
)

// reload loads a dump as if it were a file.
func reload(t require.TestingT, text string) *Config {
	l := newLoader()
	l.applyTOML("dump", []byte(text))
	l.complete()
	require.NoError(t, asError(l.problems), text)
	return l.cfg
}

func TestDumpOfTheDefaultsLoadsToTheSameConfiguration(t *testing.T) {
	loaded := load(t, nil)
	require.Equal(t, loaded.Config, reload(t, loaded.Dump()))
}

func TestDumpOfAnyConfigurationLoadsToTheSameConfiguration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLoader()
		for _, k := range l.keys {
			if !k.section() && rapid.Bool().Draw(t, k.path+"?") {
				draw(t, k.path, k.value)
				if text, _ := textOf(k.value); k.withoutSecret(text) == text { // secrets are hidden
					l.origins[k.path] = rapid.SampledFrom([]string{"flag --x", "a\nb"}).Draw(t, "origin")
				}
			}
		}
		// Sizes above the networking limit are reduced.
		l.complete()
		text := dump(l.cfg, l.origins)
		require.Equal(t, l.cfg, reload(t, text), text)
	})
}

// draw sets a value to an arbitrary well-formed one of its type.
func draw(t *rapid.T, path string, v reflect.Value) {
	switch to := v.Addr().Interface().(type) {
	case *bool:
		*to = rapid.Bool().Draw(t, path)
	case *int:
		*to = rapid.IntRange(0, 1<<40).Draw(t, path)
	case *float64:
		*to = rapid.Float64Range(1, 1e9).Draw(t, path)
	case *string:
		*to = rapid.String().Draw(t, path)
	case *units.Duration:
		*to = units.Duration(rapid.Int64Min(0).Draw(t, path))
	case **units.Duration:
		d := units.Duration(rapid.Int64Min(0).Draw(t, path))
		*to = &d
	case *units.ByteSize:
		*to = units.ByteSize(rapid.Uint64().Draw(t, path))
	case *Rate:
		if n := rapid.IntRange(0, 1<<31-1).Draw(t, path); n > 0 {
			*to = Rate{n, rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, path)}
		}
	case **Tokens:
		*to = new(Tokens(rapid.IntRange(1, 1<<31-1).Draw(t, path)))
	case *Limit:
		*to = Limit(rapid.Int32Min(0).Draw(t, path))
	case **Ratio:
		r := Ratio(rapid.Float64Range(0, 1).Draw(t, path))
		*to = &r
	case *LogFormat:
		*to = rapid.SampledFrom(to.choices()).Draw(t, path)
	case *TLSMode:
		*to = rapid.SampledFrom(to.choices()).Draw(t, path)
	case *SecurityMode:
		*to = rapid.SampledFrom(to.choices()).Draw(t, path)
	case *IngressAuth:
		*to = rapid.SampledFrom(to.choices()).Draw(t, path)
	case *OnMaxAttempts:
		*to = rapid.SampledFrom(to.choices()).Draw(t, path)
	case *[]string:
		*to = append([]string(nil), rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, path)...)
	case *KafkaClusters:
		for i := range rapid.IntRange(0, 2).Draw(t, path) {
			*to = append(*to, subscription.Cluster{Name: fmt.Sprintf("c%d", i), Static: true, Properties: map[string]string{
				"bootstrap.servers": "a:1", "client.id": rapid.StringMatching(`["'= a-z]{1,9}`).Draw(t, "client.id"),
			}})
		}
	case *map[string]string:
		setMap(v, rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, path))
	default:
		t.Fatalf("%s: no generator for %T", path, to)
	}
}

func TestDumpHidesSecrets(t *testing.T) {
	loaded := load(t, nil, "PLATFORM_WORKER__INVOKER__HTTP_PROXY=http://me:planted@proxy:3128", "PLATFORM_WORKER__INVOKER__AWS_ASSUME_ROLE_EXTERNAL_ID=planted",
		`PLATFORM_WORKER__INVOKER__ADDITIONAL_REQUEST_HEADERS={"x-key" = "planted"}`)
	text := loaded.Dump()
	require.NotContains(t, text, "planted")
	require.Contains(t, text, "@proxy:3128")
	require.Contains(t, text, `{ "x-key" = "***" }`)
	for _, s := range loaded.Config.Settings() {
		require.NotContains(t, s.Value, "planted", s.Key)
	}
}

// TestHiddenValuesAreRefused loads a dump that hides secrets.
func TestHiddenValuesAreRefused(t *testing.T) {
	for _, pair := range []string{
		`PLATFORM_TRACING_HEADERS={"x-key" = "***"}`, `PLATFORM_WORKER__INVOKER__ADDITIONAL_REQUEST_HEADERS={"a" = "1", "x-key" = "***"}`,
		"PLATFORM_WORKER__INVOKER__AWS_ASSUME_ROLE_EXTERNAL_ID=***",
	} {
		_, err := Load(nil, []string{pair})
		require.ErrorContains(t, err, "*** stands for one that --dump-config hides", pair)
	}
}

func TestDumpContainsTheSourcesOfValues(t *testing.T) {
	text := load(t, []string{"--bind-port=6000"}, "PLATFORM_WORKER__INVOKER__ABORT_TIMEOUT=3m").Dump()
	require.Contains(t, text, "\nbind-port = 6000  # flag --bind-port\n")
	require.Contains(t, text, "\nabort-timeout = \"3m\"  # environment variable PLATFORM_WORKER__INVOKER__ABORT_TIMEOUT\n")
	require.Contains(t, text, "\nrequest-size-limit = \"32.0 MiB\"\n")
	require.Contains(t, text, "\nmax-attempts = 70\n")
	require.Contains(t, text, "\nconcurrent-api-requests-limit = \"unlimited\"\n")
	require.Contains(t, text, "\n# max-journal-retention is not set\n")
	require.Contains(t, text, "\nadditional-request-headers = { \"x-platform-cluster-name\" = \"localcluster\" }\n")
}

func TestEveryKeyIsNamedDescribedAndReachable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range keys(Default()) {
		require.Regexp(t, `^[a-z0-9-]+(\.[a-z0-9-]+)*$`, k.path)
		require.False(t, seen[k.path], k.path)
		seen[k.path] = true
		require.Equal(t, k.path, variablePath(strings.TrimPrefix(k.variable(), variablePrefix)))
		if !k.section() {
			require.NotEmpty(t, k.help, k.path)
		}
	}
}

func TestListen(t *testing.T) {
	first, err := Listener{BindIP: "127.0.0.1"}.Listen(t.Context(), "ingress")
	require.NoError(t, err)
	defer func() { require.NoError(t, first.Close()) }()
	require.Equal(t, "http://"+first.Addr().String()+"/", Listener{}.AdvertisedURL(first.Addr()))

	_, err = Listener{BindAddress: first.Addr().String()}.Listen(t.Context(), "ingress")
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.RT0004, code)
	require.ErrorContains(t, err, "[RT0004] listen on "+first.Addr().String()+" (ingress.bind-port): bind: address already in use")
}

func TestDefaultListenerServesIPv4(t *testing.T) {
	listener, err := Listener{BindIP: "::"}.Listen(t.Context(), "")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// 0.0.0.0 is all addresses of IPv4, and those only.
func TestListenersOfIPv4DoNotServeIPv6(t *testing.T) {
	for _, l := range []Listener{{BindIP: "0.0.0.0"}, {BindAddress: "0.0.0.0:0"}} {
		listener, err := l.Listen(t.Context(), "")
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		_, err = net.Dial("tcp", "[::1]:"+port)
		require.Error(t, err)
		require.NoError(t, listener.Close())
	}
}

func TestAdvertisedURL(t *testing.T) {
	bound := &net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}
	require.Equal(t, "http://127.0.0.1:8080/", Listener{}.AdvertisedURL(bound))
	require.Equal(t, "http://node1:8080/", Listener{AdvertisedHost: "node1"}.AdvertisedURL(bound))
	require.Equal(t, "https://x/", Listener{AdvertisedHost: "n", AdvertisedAddress: "https://x"}.AdvertisedURL(bound))
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("bind-port = 1\n[worker.invoker]\nabort-timeout='1m'\nadditional-request-headers={a='b'}"))
	f.Add([]byte("[[ingress]]\nx.y.z = {a = {b = 1}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := newLoader()
		l.applyTOML("fuzz", text)
		if len(l.problems) == 0 {
			l.complete()
			l.validate()
		}
		if asError(l.problems) == nil {
			for _, k := range l.keys { // secrets are hidden
				if text, _ := textOf(k.value); !k.section() && k.withoutSecret(text) != text {
					return
				}
			}
			require.Equal(t, l.cfg, reload(t, dump(l.cfg, l.origins)))
		}
	})
}
