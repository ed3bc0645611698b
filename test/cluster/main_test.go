package cluster

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/harness/sandbox"
)

func TestMain(m *testing.M) {
	os.Exit(sandbox.Run(func() int {
		defer harness.Cleanup()
		return m.Run()
	}))
}

// number reads a setting.
func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}
