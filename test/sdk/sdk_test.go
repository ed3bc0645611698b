package sdk

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// variation is one way for the server to drive the same services.
type variation struct {
	name    string
	server  map[string]string // configuration of the server
	service map[string]string // environment of the services
	http11  bool              // register for HTTP/1.1, hence request-response
}

var variations = []variation{
	{name: "default"},
	// Every await that is not satisfied at once suspends the invocation.
	{name: "suspend", server: map[string]string{"WORKER__INVOKER__INACTIVITY_TIMEOUT": "0s"}},
	// The services ask for lazy state.
	{name: "lazy-state", service: map[string]string{"LAZY_STATE": "1"}},
	// The server sends no state along, or only the few keys that fit.
	{name: "no-eager-state", server: map[string]string{"WORKER__INVOKER__EAGER_STATE_SIZE_LIMIT": "0"}},
	{name: "partial-state", server: map[string]string{"WORKER__INVOKER__EAGER_STATE_SIZE_LIMIT": "24"}},
	// The services take the whole request before they answer.
	{name: "request-response", service: map[string]string{"BIDI": "0"}},
}

// chosen returns the variations that SDK_VARIATIONS names.
func chosen(t *testing.T) []variation {
	names := os.Getenv("SDK_VARIATIONS")
	switch names {
	case "":
		return variations[:1]
	case "all":
		return variations
	}
	var out []variation
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(variations, func(v variation) bool { return v.name == name })
		require.GreaterOrEqual(t, i, 0, "SDK_VARIATIONS names the unknown variation %q", name)
		out = append(out, variations[i])
	}
	return out
}

// language starts the test services of one SDK.
type language struct {
	name    string // prefix of the service names
	command func(t *testing.T) []string
}

var languages = []language{
	{name: "Go", command: func(t *testing.T) []string {
		bin, err := harness.Build("platform/test/sdk/services/go")
		require.NoError(t, err)
		return []string{bin}
	}},
	{name: "Ts", command: func(t *testing.T) []string {
		return []string{"node", "src/main.js"}
	}},
}

// available returns the languages whose toolchain is there. In CI all must be.
func available() (found []language, missing string) {
	found = languages[:1]
	if _, err := exec.LookPath("node"); err != nil {
		return found, "node is not installed"
	}
	if _, err := os.Stat("services/ts/node_modules/@restatedev/restate-sdk"); err != nil {
		return found, "the SDK is not installed: run make ts-deps"
	}
	return languages, ""
}

func TestServicesOfEverySDK(t *testing.T) {
	langs, missing := available()
	if missing != "" {
		require.Empty(t, os.Getenv("CI"), "TypeScript services: %s", missing)
	}
	for _, v := range chosen(t) {
		t.Run(v.name, func(t *testing.T) {
			if missing != "" {
				t.Run("Ts", func(t *testing.T) { t.Skipf("TypeScript services: %s", missing) })
			}
			runVariation(t, v, langs)
		})
	}
}

// runVariation starts one server with the services of all languages and holds
// every case against each of them.
func runVariation(t *testing.T, v variation, langs []language) {
	recorder := harness.RecorderFor(t)
	server := harness.ServerFor(t, v.server)
	services := map[string]*harness.Service{}
	for _, l := range langs {
		services[l.name] = startLanguage(t, l, v, recorder)
		require.NoError(t, server.Register(t.Context(), services[l.name].URI(), v.http11))
	}
	langNames := slices.Sorted(maps.Keys(services))

	for _, group := range []struct {
		name     string
		cases    []testCase
		parallel bool
	}{
		{"together", slices.Concat(echoCases, stepCases, callCases, stateCases, ingressCases), true},
		{"alone", crashCases, false}, // they kill processes that the others use
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, name := range langNames {
				for _, c := range group.cases {
					t.Run(name+"/"+c.name, func(t *testing.T) {
						if group.parallel {
							t.Parallel()
						}
						c.run(&env{T: t, lang: name, langs: langNames, server: server, service: services[name], recorder: recorder})
					})
				}
			}
		})
	}
}

func startLanguage(t *testing.T, l language, v variation, recorder *harness.Recorder) *harness.Service {
	opts := harness.ServiceOptions{
		Name:    "service-" + strings.ToLower(l.name),
		Command: l.command(t),
		Env:     map[string]string{"RECORDER": recorder.URL()},
	}
	if l.name == "Ts" {
		dir, err := filepath.Abs("services/ts")
		require.NoError(t, err)
		opts.WorkDir = dir
	}
	maps.Copy(opts.Env, v.service)
	return harness.ServiceFor(t, opts)
}
