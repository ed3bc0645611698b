package process

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestConnectionsLeaveAQuarterOfTheFiles(t *testing.T) {
	c := ConnectionLimits{Ingress: 10_000, Admin: 2000, Node: 500, Pending: 512}
	require.Equal(t, c, c.within(25_000))
	require.Equal(t, ConnectionLimits{5000, 1000, 250, 512}, c.within(12_500))
	require.Equal(t, ConnectionLimits{400, 80, 20, 250}, c.within(1000))
	require.Equal(t, ConnectionLimits{1, 1, 1, 1}, c.within(0))
}

func TestConnectionsFitIntoTheLimitOfOpenFiles(t *testing.T) {
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 500, Max: before.Max}))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	var out bytes.Buffer
	c := ConnectionLimits{Ingress: 10_000, Admin: 2000, Node: 500, Pending: 512}.Fit(slog.New(slog.NewTextHandler(&out, nil)))
	require.Equal(t, ConnectionLimits{200, 40, 10, 125}, c)
	require.Contains(t, out.String(), `files=500 ingress=200 admin=40 node=10 pending=125`)
}
