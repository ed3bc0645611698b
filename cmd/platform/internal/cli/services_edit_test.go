package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/cli/command"
)

// edit runs services with an editor. It returns what was printed and the body of the change.
func edit(t *testing.T, editor string, args ...string) (status int, printed, change string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			var body bytes.Buffer
			_, _ = body.ReadFrom(r.Body)
			change = body.String()
		}
		_, _ = w.Write([]byte(`{"name":"S","ty":"Service","handlers":[],"deployment_id":"dp_1","revision":1,"public":true,"inactivity_timeout":"1m","retry_policy":{"exponentiation_factor":2.0,"max_attempts":3}}`))
	}))
	defer server.Close()
	env := map[string]string{"PLATFORM_ADMIN_URL": server.URL, "EDITOR": editor, "PLATFORM_CLI_CONFIG": filepath.Join(t.TempDir(), "none")}
	var out bytes.Buffer
	status = Run(t.Context(), append([]string{"services"}, args...), command.System{
		In: strings.NewReader(""), Out: &out, Err: &out, Home: t.TempDir(), Getenv: func(name string) string { return env[name] },
	})
	return status, out.String(), change
}

func TestEditorsHaveArgumentsAndPathsWithSpaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space")
	require.NoError(t, os.Mkdir(dir, 0o700))
	program := filepath.Join(dir, "edit")
	const script = "#!/bin/sh\nn=\nfor file; do :; done\ntest $# = 1 || n=$1\nsed -i \"s/^inactivity-timeout = .*/inactivity-timeout = \\\"${n}7s\\\"/\" \"$file\"\n"
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700)) //nolint:gosec // run by the test
	for editor, timeout := range map[string]string{
		program:               "7s",
		`"` + program + `" 1`: "17s",
		`'` + program + `' 2`: "27s",
		strings.ReplaceAll(program, " ", `\ `) + ` "3"`: "37s",
	} {
		status, printed, change := edit(t, editor, "edit", "S", "--yes")
		require.Zero(t, status, "%s: %s", editor, printed)
		require.Contains(t, change, `"inactivity_timeout":"`+timeout+`"`, editor)
	}
	status, printed, _ := edit(t, "no-such-editor --wait", "edit", "S")
	require.NotZero(t, status)
	require.Contains(t, printed, "editor no-such-editor --wait: ")
}

// An editor that is a script makes the same mistake each time.
func TestServicesEditWithYesDoesNotRepeat(t *testing.T) {
	edits := filepath.Join(t.TempDir(), "edits")
	for _, args := range [][]string{{"edit", "S", "--yes"}, {"edit", "S"}} {
		require.NoError(t, os.WriteFile(edits, nil, 0o600))
		status, printed, change := edit(t, "echo x >> "+edits+"; echo '= 3' >>", args...)
		require.NotZero(t, status)
		require.Empty(t, change)
		require.Contains(t, printed, "line ")
		opened, err := os.ReadFile(edits)
		require.NoError(t, err)
		require.Equal(t, "x\n", string(opened))
		kept := regexp.MustCompile(`What was edited is in (\S+\.toml)\.`).FindStringSubmatch(printed)
		require.NotNil(t, kept, printed)
		text, err := os.ReadFile(kept[1])
		require.NoError(t, err)
		require.Contains(t, string(text), "= 3")
		require.NoError(t, os.Remove(kept[1]))
	}
}

func TestFactorsThatAreNoNumbers(t *testing.T) {
	for _, factor := range []string{"NaN", "Inf", "+Infinity", "0.5", "-1"} {
		status, printed, change := edit(t, "false", "patch", "S", "--retry-factor="+factor, "--yes")
		require.NotZero(t, status)
		require.Empty(t, change)
		require.Contains(t, printed, "--retry-factor must be a number of 1 or more", factor)
	}
	status, printed, change := edit(t, "sed -i 's/^retry-factor.*/retry-factor = nan/'", "edit", "S", "--yes")
	require.NotZero(t, status)
	require.Empty(t, change)
	require.Contains(t, printed, "retry-factor must be a number of 1 or more")
}
