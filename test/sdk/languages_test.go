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

// language starts the test services of one SDK.
type language struct {
	name    string // prefix of the service names
	dir     string // working directory, relative to this package
	command func(t *testing.T) []string
	missing func() string     // what is not installed, "" if all is there
	lacks   map[string]string // features that the SDK does not offer, and why

	protocol int // the latest that the SDK knows, if that is not 7
}

var languages = []language{
	{
		name: "Go",
		command: func(t *testing.T) []string {
			bin, err := harness.Build("platform/test/sdk/services/go")
			require.NoError(t, err)
			return []string{bin}
		},
		missing: func() string { return "" },
		lacks: map[string]string{
			"get-output":            "asks for no result without waiting",
			"explicit-cancellation": "leaves no cancellation to the handler",
			"pause-error":           "has no error that pauses",
			"mismatch-behavior":     "offers no choice for journal mismatches",
		},
	},
	{
		name:    "Ts",
		dir:     "services/ts",
		command: program("node", "src/main.js"),
		missing: requirement("make ts-deps", "node", "services/ts/node_modules/@restatedev/restate-sdk"),
		lacks:   map[string]string{"get-output": "asks for no result without waiting"},
	},
	{
		name:    "Py",
		dir:     "services/python",
		command: program(".venv/bin/python", "main.py"),
		missing: requirement("make py-deps", "python3", "services/python/.venv/lib/python3*/site-packages/restate"),
		lacks: map[string]string{
			"get-output":            "asks for no result without waiting",
			"explicit-cancellation": "leaves no cancellation to the handler",
			"nested-combinators":    "combines futures of its own only, and a combination is not one",
			"pause-error":           "has no error that pauses",
			"mismatch-behavior":     "offers no choice for journal mismatches",
		},
	},
	{
		name:    "Java",
		dir:     "services/java",
		command: program("java", "-jar", "target/services.jar"),
		missing: requirement("make java-deps", "java", "services/java/target/services.jar"),
		lacks: map[string]string{
			"explicit-cancellation": "leaves no cancellation to the handler",
			"signals":               "has no named signals",
			"metadata":              "has no metadata of terminal errors",
			"pause-error":           "has no error that pauses",
			"mismatch-behavior":     "offers no choice for journal mismatches",
		},
		protocol: 6, // without a JDK that runs its native core
	},
	{
		name:    "Rust",
		dir:     "services/rust",
		command: program("target/release/services"),
		missing: requirement("make rust-deps", "", "services/rust/target/release/services"),
		lacks: map[string]string{
			"get-output":            "asks for no result without waiting",
			"explicit-cancellation": "leaves no cancellation to the handler",
			"promise-conflict":      "does not tell what came of completing a promise",
			"metadata":              "has no metadata of terminal errors",
			"pause-error":           "has no error that pauses",
			"mismatch-behavior":     "offers no choice for journal mismatches",
		},
	},
}

// program runs a fixed command line; a path in it is relative to the language's
// directory.
func program(args ...string) func(*testing.T) []string {
	return func(*testing.T) []string { return args }
}

// requirement reports a missing tool or file, and the command that provides it.
func requirement(remedy, tool, path string) func() string {
	return func() string {
		if tool != "" {
			if _, err := exec.LookPath(tool); err != nil {
				return tool + " is not installed"
			}
		}
		if found, _ := filepath.Glob(path); len(found) == 0 {
			return path + " is missing: run " + remedy
		}
		return ""
	}
}

// protocolVersion is the version that the language and the server negotiate.
func (l language) protocolVersion(v variation) int {
	if l.protocol > 0 {
		return min(l.protocol, v.version())
	}
	return v.version()
}

// hasFeature reports whether the language has the feature; all have "".
func (l language) hasFeature(feature string) bool {
	_, lacks := l.lacks[feature]
	return !lacks
}

// available returns the languages that SDK_LANGS names, or all, and skips those whose
// toolchain is missing. In CI, and if named, a missing toolchain is an error.
func available(t *testing.T) []language {
	names := os.Getenv("SDK_LANGS")
	var found []language
	for _, l := range languages {
		if names != "" && !slices.Contains(strings.Split(names, ","), l.name) {
			continue
		}
		missing := l.missing()
		if missing == "" {
			found = append(found, l)
			continue
		}
		if names != "" || os.Getenv("CI") != "" {
			t.Errorf("%s services: %s", l.name, missing)
		}
		t.Run(l.name, func(t *testing.T) { t.Skipf("%s services: %s", l.name, missing) })
	}
	require.NotEmpty(t, found, "SDK_LANGS=%s names no language that can run", names)
	return found
}

// start starts the services of the language with additional environment.
func (l language) start(t *testing.T, recorder *harness.Recorder, env ...map[string]string) *harness.Service {
	opts := harness.ServiceOptions{
		Name:    "service-" + strings.ToLower(l.name),
		Command: slices.Clone(l.command(t)),
		Env:     map[string]string{"RECORDER": recorder.URL()},
	}
	for _, more := range env {
		maps.Copy(opts.Env, more)
	}
	if l.dir != "" {
		dir, err := filepath.Abs(l.dir)
		require.NoError(t, err)
		opts.WorkDir = dir
		if strings.Contains(opts.Command[0], "/") {
			opts.Command[0] = filepath.Join(dir, opts.Command[0])
		}
	}
	return harness.ServiceFor(t, opts)
}
