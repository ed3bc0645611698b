package sdk

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// adminResponse is a response of the admin API.
type adminResponse struct {
	Status int
	Body   []byte
}

// admin sends a request to the admin API; in is JSON, nil for no body.
func (e *env) admin(method, path string, in any) adminResponse {
	e.Helper()
	req, err := http.NewRequestWithContext(e.bounded(), method, e.server.Admin()+path, bytes.NewReader(e.encode(in)))
	require.NoError(e, err)
	if in != nil {
		req.Header.Set("content-type", "application/json")
	}
	req.Header.Set("accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(e, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(e, err)
	return adminResponse{resp.StatusCode, body}
}

// operate applies an operation to an invocation: cancel, kill, pause …, optionally with a
// query string.
func (e *env) operate(id, operation string) adminResponse {
	e.Helper()
	return e.admin(http.MethodPatch, "/invocations/"+id+"/"+operation, nil)
}

// requireOperation applies an operation, which must be accepted.
func (e *env) requireOperation(id, operation string) adminResponse {
	e.Helper()
	resp := e.operate(id, operation)
	require.Contains(e, []int{http.StatusOK, http.StatusAccepted}, resp.Status, "%s of %s: %s", operation, id, resp.Body)
	return resp
}

// invocationStatus is an operator's view of an invocation.
type invocationStatus struct {
	Status                string `json:"status"`
	LastFailureErrorCode  string `json:"last_failure_error_code"`
	PinnedProtocolVersion int    `json:"pinned_service_protocol_version"`
}

// statusOf returns the status of an invocation, the zero value if it does not exist.
func (e *env) statusOf(id string) invocationStatus {
	e.Helper()
	if e.server.Target.Name == "peer" {
		return e.queryStatus(id)
	}
	resp := e.admin(http.MethodGet, "/invocations/"+id, nil)
	if resp.Status == http.StatusNotFound {
		return invocationStatus{}
	}
	require.Equal(e, http.StatusOK, resp.Status, "%s", resp.Body)
	var s invocationStatus
	require.NoError(e, json.Unmarshal(resp.Body, &s))
	return s
}

// queryStatus queries the peer, which supports only SQL.
func (e *env) queryStatus(id string) invocationStatus {
	e.Helper()
	query := "select status, last_failure_error_code, pinned_service_protocol_version from sys_invocation where id = '" + id + "'"
	resp := e.admin(http.MethodPost, "/query", map[string]string{"query": query})
	require.Equal(e, http.StatusOK, resp.Status, "%s", resp.Body)
	var out struct {
		Rows []invocationStatus `json:"rows"`
	}
	require.NoError(e, json.Unmarshal(resp.Body, &out))
	if len(out.Rows) == 0 {
		return invocationStatus{}
	}
	return out.Rows[0]
}

// awaitStatus waits until an invocation has one of the statuses.
func (e *env) awaitStatus(id string, statuses ...string) {
	e.Helper()
	want := strings.Join(statuses, ",")
	var last invocationStatus
	require.Eventually(e, func() bool {
		last = e.statusOf(id)
		return strings.Contains(","+want+",", ","+last.Status+",")
	}, testTimeout, 20*time.Millisecond, "invocation %s never became %s", id, want)
}

// register registers the endpoint at uri and returns the deployment's id.
func (e *env) register(uri string) string {
	e.Helper()
	resp := e.admin(http.MethodPost, "/deployments", map[string]any{"uri": uri, "use_http_11": e.suite.variation.http11})
	require.Contains(e, []int{http.StatusOK, http.StatusCreated}, resp.Status, "%s", resp.Body)
	var out struct {
		ID string `json:"id"`
	}
	require.NoError(e, json.Unmarshal(resp.Body, &out))
	return out.ID
}
