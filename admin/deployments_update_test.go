package admin

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/invoker/discovery"
	"platform/metadata"
)

const first = "/deployments/dp_10000000000000000000001"

// moved is a server with one deployment, whose endpoint can also be found at http://b.
func moved(t *testing.T) *testServer {
	w := newTestServer(t, nil)
	w.offers["http://a/"], w.offers["http://b/"] = small, small
	body := `{"uri":"http://a","additional_headers":{"X-A":"1"},"metadata":{"commit":"a"}}`
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", body).StatusCode)
	w.asked = nil
	return w
}

func TestUpdateMovesADeployment(t *testing.T) {
	for _, method := range []string{"PATCH", "PUT"} {
		for _, prefix := range []string{"", "/v2", "/v3", "/v4"} {
			w := moved(t)
			updated := w.ask(t, method, prefix+first, `{"uri":"http://b"}`)
			body := text(t, updated)
			require.Equal(t, http.StatusOK, updated.StatusCode, body)
			require.Equal(t, []discovery.Request{{URI: "http://b/", AdditionalHeaders: map[string]string{"x-a": "1"}}}, w.asked)
			require.JSONEq(t, body, text(t, w.ask(t, "GET", first, "")))
			goldenJSON(t, "updated", body)
		}
	}
}

// Headers are write-only: who may change the address of a deployment must not get them that way.
func TestUpdateDoesNotDiscloseHeaders(t *testing.T) {
	w := secured(t, byRole(), func(c *Config) { c.RoutingHeaders = []string{"x-route"} })
	for _, at := range []string{"http://a/", "http://a/v2/", "http://b/", "https://a/", "http://a:81/", "http://c/"} {
		w.offers[at] = small
	}
	do := func(role, method, path, body string) (int, string) {
		answer := w.ask(t, method, path, body, "Authorization", "Bearer "+w.tokens[role])
		return answer.StatusCode, text(t, answer)
	}
	status, body := do("deployer", "POST", "/deployments", `{"uri":"http://a","additional_headers":{"X-A":"1","X-Route":"r"}}`)
	require.Equal(t, http.StatusCreated, status, body)
	var d struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	path := "/deployments/" + d.ID
	for _, uri := range []string{"http://b", "https://a", "http://a:81"} {
		for _, more := range []string{"", `,"dry_run":true`, `,"overwrite":true`} {
			w.asked = nil
			status, body = do("deployer", "PATCH", path, `{"uri":"`+uri+`"`+more+`}`)
			require.Equal(t, http.StatusUnprocessableEntity, status, uri)
			require.Contains(t, body, "only for http://a:80")
			require.Empty(t, w.asked, "not even the discovery gets them")
		}
	}
	status, body = do("deployer", "PATCH", path, `{"uri":"http://A:80/v2"}`)
	require.Equal(t, http.StatusOK, status, body)
	status, body = do("admin", "PATCH", path, `{"uri":"http://b"}`)
	require.Equal(t, http.StatusOK, status, body)
	status, body = do("deployer", "PATCH", path, `{"uri":"http://c","additional_headers":{"x-route":"r"}}`)
	require.Equal(t, http.StatusOK, status, body)
	status, body = do("deployer", "PATCH", path, `{"uri":"http://a"}`)
	require.Equal(t, http.StatusOK, status, body)
}

func TestUpdateOfNothing(t *testing.T) {
	w := moved(t)
	before := text(t, w.ask(t, "GET", first, ""))
	for _, body := range []string{`{}`, `{"dry_run":true}`, `{"uri":null}`} {
		same := w.ask(t, "PATCH", first, body)
		require.Equal(t, http.StatusOK, same.StatusCode)
		require.JSONEq(t, before, text(t, same))
	}
	require.Empty(t, w.asked, "no endpoint was called")
}

func TestUpdateReplacesAllHeaders(t *testing.T) {
	w := moved(t)
	require.Contains(t, text(t, w.ask(t, "PATCH", first, `{"additional_headers":{"X-B":"2"}}`)), `"additional_headers":{"x-b":"***"}`)
	require.Equal(t, http.StatusBadRequest, w.ask(t, "PATCH", first, `{"additional_headers":{"X-B":"***"}}`).StatusCode, "what is shown must not become the value")
	require.NotContains(t, text(t, w.ask(t, "PATCH", first, `{"additional_headers":{}}`)), `"additional_headers"`)
	require.Equal(t, "http://a/", w.asked[1].URI)
	require.Contains(t, text(t, w.ask(t, "PATCH", first, `{"use_http_11":true}`)), `"http_version":"HTTP/1.1"`)
	require.Contains(t, text(t, w.ask(t, "PATCH", first, `{"use_http_11":false}`)), `"http_version":"HTTP/2.0"`)
}

func TestUpdateLeavesServicesUnlessItOverwrites(t *testing.T) {
	w := moved(t)
	w.offers["http://b/"] = func() (*metadata.Deployment, error) {
		d, err := small()
		d.Services[0].Handlers = append(d.Services[0].Handlers, &metadata.Handler{Name: "wave"})
		return d, err
	}
	planned := text(t, w.ask(t, "PATCH", first, `{"uri":"http://b","dry_run":true,"overwrite":true}`))
	require.Contains(t, planned, `"wave"`)
	require.Equal(t, "http://a/", w.store.Schemas().Deployments["dp_10000000000000000000001"].URI, "planning stores nothing")

	kept := text(t, w.ask(t, "PATCH", first, `{"uri":"http://b"}`))
	require.NotContains(t, kept, `"name":"wave"`)
	require.Contains(t, kept, "offers other services or handlers than the deployment has (new Greeter/wave)")
	require.Contains(t, kept, `"uri":"http://b/"`)

	taken := text(t, w.ask(t, "PATCH", first, `{"overwrite":true}`))
	require.Contains(t, taken, `"name":"wave"`)
	require.Contains(t, taken, `"revision":1`)
	require.NotContains(t, taken, `"info"`)
}

func TestUpdateRejections(t *testing.T) {
	w := moved(t)
	w.offers["http://less/"] = func() (*metadata.Deployment, error) {
		d, err := small()
		d.Services[0].Handlers[0].Name, d.MaxProtocol = "other", 7
		return d, err
	}
	w.offers["http://down/"] = func() (*metadata.Deployment, error) {
		return nil, errcode.New(errcode.META0003, "connection refused")
	}
	w.offers[functionARN] = small
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"arn":"`+functionARN+`"}`).StatusCode)
	const function = "/deployments/dp_10000000000000000000002"
	for _, tc := range []struct {
		name, path, body string
		status           int
		code, message    string
	}{
		{"incompatible", first, `{"uri":"http://less"}`, 400, "META0016", "it speaks service protocol 5 to 7, not 5 to 6; handler Greeter/greet is missing"},
		{"incompatible, planned", first, `{"uri":"http://less","dry_run":true}`, 400, "META0016", "is missing"},
		{"unreachable", first, `{"uri":"http://down"}`, 502, "META0003", "connection refused"},
		{"bad address", first, `{"uri":"b"}`, 400, "", "not absolute"},
		{"function fields", first, `{"arn":"` + functionARN + `"}`, 400, "", "The request field 'arn' is invalid. Reason: the deployment is an HTTP endpoint"},
		{"role", first, `{"assume_role_arn":"x"}`, 400, "", "'assume_role_arn' is invalid"},
		{"endpoint fields", function, `{"uri":"http://a"}`, 400, "", "The request field 'uri' is invalid. Reason: the deployment is a function"},
		{"bad ARN", function, `{"arn":"x"}`, 400, "", "is not an ARN"},
		{"header twice", first, `{"additional_headers":{"a":"","A":""}}`, 400, "", "given twice"},
		{"wrong type", first, `{"overwrite":"yes"}`, 422, "", "the field 'overwrite' must be a boolean"},
		{"no body", first, ` `, 400, "", "the request body is empty"},
		{"unknown", "/deployments/dp_10000000000000000000009", `{}`, 404, "", "does not exist"},
		{"bad id", "/deployments/x", `{}`, 400, "", "The request field 'deployment' is invalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := w.ask(t, "PATCH", tc.path, tc.body)
			body := text(t, answer)
			require.Equal(t, tc.status, answer.StatusCode, body)
			requireError(t, answer, body, tc.code, tc.message)
		})
	}
}

func TestUpdatesCanLeadToOneAddressTwice(t *testing.T) {
	w := moved(t)
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://b"}`).StatusCode)
	require.Equal(t, http.StatusOK, w.ask(t, "PUT", first, `{"uri":"http://b"}`).StatusCode)
	forced := w.ask(t, "POST", "/deployments", `{"uri":"http://b","force":true}`)
	body := text(t, forced)
	require.Equal(t, http.StatusConflict, forced.StatusCode)
	requireError(t, forced, body, "META0017", "2 deployments share the address http://b/")

	require.Equal(t, http.StatusAccepted, w.ask(t, "DELETE", first+"?force=true", "").StatusCode)
	require.Equal(t, http.StatusOK, w.ask(t, "POST", "/deployments", `{"uri":"http://b","force":true}`).StatusCode)
}

// The discovery of an update takes a while. It must not undo what another request has changed
// meanwhile.
func TestConcurrentUpdatesOfADeploymentDoNotUndoEachOther(t *testing.T) {
	w := newTestServer(t, nil)
	offer := func() (*metadata.Deployment, error) {
		return &metadata.Deployment{MinProtocol: 5, MaxProtocol: 5, Services: []*metadata.Service{{Name: "Greeter"}}}, nil
	}
	w.offers["http://a/"] = offer
	requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://a","additional_headers":{"authorization":"old"}}`))
	id := w.store.Schemas().Services["Greeter"].Deployment
	path := "/deployments/" + string(id)
	w.offers["http://b/"] = func() (*metadata.Deployment, error) {
		requireStatus(t, http.StatusOK, w.ask(t, "PATCH", path, `{"additional_headers":{"authorization":"new"}}`))
		return offer()
	}
	rejected := w.ask(t, "PATCH", path, `{"uri":"http://b"}`)
	requireStatus(t, http.StatusConflict, rejected)
	stored := w.store.Schemas().Deployments[id]
	require.Equal(t, "new", stored.AdditionalHeaders["authorization"])
	require.Equal(t, "http://a/", stored.URI)

	w.offers["http://b/"] = offer
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", path, `{"uri":"http://b"}`))
	require.Equal(t, "new", w.store.Schemas().Deployments[id].AdditionalHeaders["authorization"])
}

// A client repeats a request that timed out while the first one is still in progress.
func TestTheSameUpdateOfADeploymentTwiceConcurrently(t *testing.T) {
	for _, body := range []string{`{"uri":"http://b"}`, `{"uri":"http://b","use_http_11":false,"additional_headers":{"a":"b"}}`} {
		w := newTestServer(t, nil)
		offer := func() (*metadata.Deployment, error) {
			return &metadata.Deployment{MinProtocol: 5, MaxProtocol: 5, Services: []*metadata.Service{{Name: "Greeter"}}}, nil
		}
		w.offers["http://a/"] = offer
		requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://a"}`))
		path := "/deployments/" + string(w.store.Schemas().Services["Greeter"].Deployment)
		w.offers["http://b/"] = func() (*metadata.Deployment, error) {
			w.offers["http://b/"] = offer
			requireStatus(t, http.StatusOK, w.ask(t, "PATCH", path, body))
			return offer()
		}
		requireStatus(t, http.StatusOK, w.ask(t, "PATCH", path, body))
	}
}
