package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/harness/sandbox"
)

func TestMain(m *testing.M) {
	if !sandbox.Inside() {
		if err := harness.FetchCommit(firstRelease, "./cmd/platform-server"); err != nil && !errors.Is(err, harness.ErrNoCommit) {
			_, _ = fmt.Fprintln(os.Stderr, err) // its build fails if the modules are not in the cache
		}
	}
	os.Exit(sandbox.Run(func() int {
		defer harness.Cleanup()
		return m.Run()
	}))
}

// intSetting returns an integer from the environment.
func intSetting(t *testing.T, variable string, defaultValue int) int {
	text := os.Getenv(variable)
	if text == "" {
		return defaultValue
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}
