package command

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/client"
	"platform/internal/httpserver"
)

func TestReportOfAnInterrupt(t *testing.T) {
	var out bytes.Buffer
	a := &App{System: System{Err: &out, Getenv: os.Getenv}}
	a.Report(fmt.Errorf("get: %w", context.Canceled))
	require.Equal(t, "Interrupted\n", out.String())
	a.Report(WithHint(context.Canceled, "It continues."))
	require.Equal(t, "Interrupted\nInterrupted\nIt continues.\n", out.String())
}

// A request without TLS is recognized by the response of the server, and by that of net/http, which earlier releases sent.
func TestRequestsWithoutTLSGetAHint(t *testing.T) {
	for _, message := range []string{httpserver.RequiresTLS, "Client sent an HTTP request to an HTTPS server."} {
		hint := HintFor(&client.APIError{Status: http.StatusBadRequest, Message: message})
		require.Contains(t, hint, "https://", message)
	}
}
