package otlp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The errors of the libraries do not say that the collector has another port for the transport.
func TestWrongTransportIsExplained(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	overHTTP := httptest.NewServer(http.NotFoundHandler())
	defer overHTTP.Close()
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(overHTTP.URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	err = conn.Invoke(ctx, "/a/b", &emptypb.Empty{}, &emptypb.Empty{})
	require.ErrorContains(t, explained(err), "this port may expect OTLP over HTTP")

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	overGRPC := grpc.NewServer()
	go func() { _ = overGRPC.Serve(listener) }()
	defer overGRPC.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+listener.Addr().String()+"/v1/traces", strings.NewReader("x"))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	require.ErrorContains(t, explained(err), "this port may expect OTLP over gRPC")

	other := errors.New("connection refused")
	require.Equal(t, other, explained(other))
}
