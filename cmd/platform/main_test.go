package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"platform/internal/ids"
)

// update rewrites the expected output in the scripts: go test ./cmd/platform -update
var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"platform":        func() { os.Exit(run()) },
		"platform-server": fakePlatformServer,
	})
}

// TestScripts runs the scripts in testdata against a fake server.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			fake := newFakeServer(env.WorkDir)
			env.Defer(fake.Close)
			env.Values["fake"] = fake
			env.Setenv("PLATFORM_ADMIN_URL", fake.URL+"/")
			env.Setenv("PLATFORM_INGRESS_URL", fake.URL+"/")
			env.Setenv("PLATFORM_CLI_CONFIG", filepath.Join(env.WorkDir, "config.toml"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("TMPDIR", env.WorkDir+"/.tmp")
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each of many processes ends a second late
			env.Setenv("URL", fake.URL)
			env.Setenv("AWAKEABLE", ids.Awakeable{Signal: ids.FirstAwakeable}.String())
			env.Setenv("RECEIVER", ids.Invocation{}.String())
			env.Setenv("ADDRESS", fake.Listener.Addr().String())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":   exitStatus,
			"requests": requests,
			"await":    await,
			"empty":    empty,
		},
	})
}

// requests compares the requests to the fake server since the last call with a file.
func requests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: requests file")
	}
	got := ts.Value("fake").(*fakeServer).log()
	if want := ts.ReadFile(args[0]); got != want {
		ts.Fatalf("requests:\n%s\nexpected:\n%s", got, want)
	}
}

// exitStatus runs a command and checks its exit status: status 2 platform x.
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status n command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("exit status is %s, expected %s", got, args[0])
	}
}

// await waits until a file has text that matches a pattern.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await file pattern")
	}
	pattern := regexp.MustCompile(args[1])
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if text, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && pattern.Match(text) {
			return
		}
	}
	ts.Fatalf("%s never matched %s", args[0], args[1])
}

// empty checks that a directory holds nothing, or with ! that it holds something.
func empty(ts *testscript.TestScript, neg bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if (len(entries) == 0) == neg {
		ts.Fatalf("%s has %d entries", args[0], len(entries))
	}
}
