package cluster

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReasonsThatANodeStaysAloneAreReported(t *testing.T) {
	require.Empty(t, joinFailures(nil))
	require.Equal(t, "; a:5122: 10.0.0.1:5122: refused; 10.0.0.2:5122: refused", joinFailures(map[string]error{
		"a:5122": errors.Join(errors.New("10.0.0.1:5122: refused"), errors.New("10.0.0.2:5122: refused")),
	}), "one line for all addresses of a host")
	require.Equal(t, "; a:5122: it is a node of another cluster; b:5122: no such host", joinFailures(map[string]error{
		"b:5122": errors.New("no such host"), "a:5122": errors.New("it is a node of another cluster"),
	}))
}
