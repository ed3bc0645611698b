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

// adminAnswer is an answer of the admin API.
type adminAnswer struct {
	Status int
	Body   []byte
}

// admin sends a request to the admin API; in is JSON, nil for no body.
func (e *env) admin(method, path string, in any) adminAnswer {
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
	return adminAnswer{resp.StatusCode, body}
}

// operate carries out an operation on an invocation: cancel, kill, pause …, with
// a query if it needs one.
func (e *env) operate(id, operation string) adminAnswer {
	e.Helper()
	return e.admin(http.MethodPatch, "/invocations/"+id+"/"+operation, nil)
}

// operated carries out an operation, which must be accepted.
func (e *env) operated(id, operation string) adminAnswer {
	e.Helper()
	answer := e.operate(id, operation)
	require.Contains(e, []int{http.StatusOK, http.StatusAccepted}, answer.Status, "%s of %s: %s", operation, id, answer.Body)
	return answer
}

// standing is what an operator sees of an invocation.
type standing struct {
	Status                string `json:"status"`
	LastFailureErrorCode  string `json:"last_failure_error_code"`
	PinnedProtocolVersion int    `json:"pinned_service_protocol_version"`
}

// standing asks where an invocation stands; the zero value if it is not known.
func (e *env) standing(id string) standing {
	e.Helper()
	if e.server.Target.Name == "peer" {
		return e.queried(id)
	}
	answer := e.admin(http.MethodGet, "/invocations/"+id, nil)
	if answer.Status == http.StatusNotFound {
		return standing{}
	}
	require.Equal(e, http.StatusOK, answer.Status, "%s", answer.Body)
	var s standing
	require.NoError(e, json.Unmarshal(answer.Body, &s))
	return s
}

// queried asks the peer, which has SQL only.
func (e *env) queried(id string) standing {
	e.Helper()
	query := "select status, last_failure_error_code, pinned_service_protocol_version from sys_invocation where id = '" + id + "'"
	answer := e.admin(http.MethodPost, "/query", map[string]string{"query": query})
	require.Equal(e, http.StatusOK, answer.Status, "%s", answer.Body)
	var out struct {
		Rows []standing `json:"rows"`
	}
	require.NoError(e, json.Unmarshal(answer.Body, &out))
	if len(out.Rows) == 0 {
		return standing{}
	}
	return out.Rows[0]
}

// becomes waits until an invocation has one of the statuses.
func (e *env) becomes(id string, statuses ...string) {
	e.Helper()
	want := strings.Join(statuses, ",")
	var last standing
	require.Eventually(e, func() bool {
		last = e.standing(id)
		return strings.Contains(","+want+",", ","+last.Status+",")
	}, limit, 20*time.Millisecond, "invocation %s never became %s", id, want)
}

// register makes the endpoint at uri known.
func (e *env) register(uri string) string {
	e.Helper()
	answer := e.admin(http.MethodPost, "/deployments", map[string]any{"uri": uri, "use_http_11": e.suite.variation.http11})
	require.Contains(e, []int{http.StatusOK, http.StatusCreated}, answer.Status, "%s", answer.Body)
	var out struct {
		ID string `json:"id"`
	}
	require.NoError(e, json.Unmarshal(answer.Body, &out))
	return out.ID
}
