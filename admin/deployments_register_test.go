package admin

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/invoker/discovery"
	"platform/metadata"
)

func TestRegisterLifeCycle(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://localhost:9080/"] = small

	created := w.ask(t, "POST", "/deployments", `{"uri":"http://LOCALHOST:9080","additional_headers":{"Authorization":"Bearer x"},"metadata":{"commit":"abc"}}`)
	require.Equal(t, http.StatusCreated, created.StatusCode)
	require.Equal(t, "deployments/dp_10000000000000000000001", created.Header.Get("Location"))
	goldenJSON(t, "registered", text(t, created))
	require.Equal(t, []discovery.Request{{URI: "http://localhost:9080/", AdditionalHeaders: map[string]string{"authorization": "Bearer x"}}}, w.asked)

	again := w.ask(t, "POST", "/deployments", `{"uri":"http://localhost:9080/"}`)
	require.Equal(t, http.StatusOK, again.StatusCode)
	require.Equal(t, "deployments/dp_10000000000000000000001", again.Header.Get("Location"))
	require.Contains(t, text(t, again), "code and schemas were not compared")

	w.offers["http://localhost:9080/"] = func() (*metadata.Deployment, error) {
		d, _ := small()
		d.Services = append(d.Services, &metadata.Service{Name: "Another"})
		d.Services[0].Handlers = []*metadata.Handler{{Name: "wave"}}
		return d, nil
	}
	changed := text(t, w.ask(t, "POST", "/deployments", `{"uri":"http://localhost:9080/"}`))
	require.Contains(t, changed, `the endpoint now offers something else (new Another, no Greeter/greet, new Greeter/wave); register with force`)
	require.Contains(t, changed, `"revision":1`)

	planned := w.ask(t, "POST", "/deployments", `{"uri":"http://localhost:9080/","force":true,"dry_run":true}`)
	require.Equal(t, http.StatusOK, planned.StatusCode)
	require.Contains(t, text(t, planned), `"revision":2`)
	require.EqualValues(t, 1, w.store.Schemas().Services["Greeter"].Revision)

	forced := w.ask(t, "POST", "/deployments", `{"uri":"http://localhost:9080/","force":true}`)
	require.Equal(t, http.StatusOK, forced.StatusCode)
	require.Equal(t, "deployments/dp_10000000000000000000001", forced.Header.Get("Location"))
	body := text(t, forced)
	require.Contains(t, body, `"revision":2`)
	require.Contains(t, body, `"Another"`)
	// The record was replaced as a whole.
	goldenJSON(t, "replaced", text(t, w.ask(t, "GET", "/deployments/dp_10000000000000000000001", "")))
}

func TestRegisterPlansWithoutStoring(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://a/"] = small
	planned := w.ask(t, "POST", "/deployments", `{"uri":"http://a","dry_run":true}`)
	require.Equal(t, http.StatusCreated, planned.StatusCode)
	require.Contains(t, text(t, planned), `"revision":1`)
	require.Empty(t, w.store.Schemas().Deployments)
}

func TestRegisterInVersion2ForcesAndConflicts(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://a/"] = small
	for range 2 {
		answer := w.ask(t, "POST", "/v2/deployments", `{"uri":"http://a"}`)
		require.Equal(t, http.StatusCreated, answer.StatusCode)
	}
	require.EqualValues(t, 2, w.store.Schemas().Services["Greeter"].Revision)
	rejected := w.ask(t, "POST", "/v2/deployments", `{"uri":"http://a","force":false}`)
	require.Equal(t, http.StatusConflict, rejected.StatusCode)
	require.Contains(t, text(t, rejected), `"platform_code":"META0004"`)
	require.Equal(t, http.StatusOK, w.ask(t, "POST", "/v3/deployments", `{"uri":"http://a","force":null}`).StatusCode)
}

func TestRegisterDistinguishesDeploymentsByRoutingHeaders(t *testing.T) {
	w := newTestServer(t, func(c *Config) { c.RoutingHeaders = []string{"X-Region"} })
	w.offers["http://a/"] = small
	for region, status := range map[string]int{"eu": http.StatusCreated, "us": http.StatusCreated} {
		body := `{"uri":"http://a","additional_headers":{"x-REGION":"` + region + `"}}`
		require.Equal(t, status, w.ask(t, "POST", "/deployments", body).StatusCode)
		require.Equal(t, http.StatusOK, w.ask(t, "POST", "/deployments", body).StatusCode)
	}
	require.Len(t, w.store.Schemas().Deployments, 2)
}

func TestRegisterWithHTTP11(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://a/"] = small
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://a","use_http_11":true}`).StatusCode)
	require.True(t, w.asked[0].UseHTTP11)
	list := text(t, w.ask(t, "GET", "/deployments", ""))
	require.Contains(t, list, `"http_version":"HTTP/1.1"`)
	require.Contains(t, list, `"protocol_type":"RequestResponse"`, "HTTP/1.1 does not stream both ways")
}

func TestRegisterRejections(t *testing.T) {
	w := newTestServer(t, nil)
	offer := func(uri string, err error) {
		w.offers[uri] = func() (*metadata.Deployment, error) { return nil, err }
	}
	offer("http://unreachable/", errcode.New(errcode.META0003, "connection refused"))
	offer("http://old/", errcode.New(errcode.META0012, "it speaks 1 to 3"))
	offer("http://garbage/", errcode.New(errcode.META0013, "not a manifest"))
	offer("http://http1/", errcode.New(errcode.META0014, "HTTP/1.1"))
	offer("http://function/", errcode.New(errcode.META0015, "both ways"))
	offer("http://plain/", errPlain)
	offer("http://invalid/", &discovery.InvalidError{Reason: "handler type does not suit"})
	w.offers["http://object/"] = func() (*metadata.Deployment, error) {
		d, _ := small()
		d.Services[0].Type = metadata.VirtualObject
		return d, nil
	}
	w.offers["http://reserved/"] = func() (*metadata.Deployment, error) {
		d, _ := small()
		d.Services[0].Name = "platformer"
		return d, nil
	}
	w.offers["http://first/"] = small
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://first"}`).StatusCode)

	for _, tc := range []struct {
		name, body string
		status     int
		code       string // of the catalogue; empty: null
		message    string // part of it
	}{
		{"unreachable", `{"uri":"http://unreachable"}`, 502, "META0003", "[META0003] connection refused"},
		{"no common version", `{"uri":"http://old"}`, 400, "META0012", "it speaks 1 to 3"},
		{"bad manifest", `{"uri":"http://garbage"}`, 502, "META0013", "not a manifest"},
		{"HTTP/1.1", `{"uri":"http://http1"}`, 502, "META0014", "HTTP/1.1"},
		{"bidirectional function", `{"uri":"http://function"}`, 502, "META0015", "both ways"},
		{"no code", `{"uri":"http://plain"}`, 502, "", "discovery of http://plain/: disk on fire"},
		{"type change", `{"uri":"http://object"}`, 409, "META0006", "service Greeter was registered as Service and cannot become VirtualObject"},
		{"type change, planned", `{"uri":"http://object","dry_run":true}`, 409, "META0006", "VirtualObject"},
		{"reserved name", `{"uri":"http://reserved"}`, 400, "META0005", "reserved"},

		{"empty body", ` `, 400, "", "the request body is empty"},
		{"syntax", "{\n  \"uri\": nope}", 400, "", "at line 2, column 11"},
		{"cut short", `{"uri":"http://a"`, 400, "", "unexpected end of JSON input at line 1, column 17"},
		{"more than one value", `{"uri":"http://a"} x`, 400, "", "invalid character 'x' after top-level value at line 1, column 20"},
		{"not an object", `["uri"]`, 422, "", "the request body must be an object, not an array"},
		{"wrong type", `{"uri":"http://a","force":"yes"}`, 422, "", "the field 'force' must be a boolean, not a string"},
		{"wrong type of uri", `{"uri":7}`, 422, "", "the field 'uri' must be a string, not a number"},
		{"wrong type inside", `{"uri":"http://a","additional_headers":{"a":1}}`, 422, "", "each value of the field 'additional_headers' must be a string, not a number"},
		{"wrong type of headers", `{"uri":"http://a","additional_headers":[]}`, 422, "", "the field 'additional_headers' must be an object, not an array"},
		{"nothing to register", `{}`, 422, "", "the field 'uri' is required"},
		{"both kinds", `{"uri":"http://a","arn":"arn:x"}`, 400, "", "exclude each other"},
		{"function without version", `{"arn":"arn:aws:lambda:eu-central-1:123456789012:function:f"}`, 400, "", "field 'arn' is invalid"},
		{"function over HTTP/1.1", `{"arn":"arn:aws:lambda:eu-central-1:123456789012:function:f:1","use_http_11":true}`, 400, "", "'use_http_11' is invalid. Reason: it belongs to 'uri'"},
		{"role without function", `{"uri":"http://a","assume_role_arn":"x"}`, 400, "", "'assume_role_arn' is invalid"},
		{"identity token", `{"uri":"http://a","auth":{"GoogleIdToken":{}}}`, 400, "", "'auth' is invalid"},
		{"bad manifest content", `{"uri":"http://invalid"}`, 400, "", "handler type does not suit"},
		{"relative", `{"uri":"localhost"}`, 400, "", "field 'uri' is invalid: \"localhost\" is not absolute"},
		{"no scheme", `{"uri":"localhost:9080"}`, 400, "", "field 'uri' is invalid: \"localhost:9080\" is not absolute"},
		{"scheme", `{"uri":"ftp://a"}`, 400, "", "scheme \"ftp\" is neither http nor https"},
		{"header name", `{"uri":"http://a","additional_headers":{"a b":"c"}}`, 400, "", `additional header "a b" has a malformed name`},
		{"header twice", `{"uri":"http://a","additional_headers":{"X-a":"x","x-A":"y"}}`, 400, "", "the header x-a is given twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := w.ask(t, "POST", "/deployments", tc.body)
			body := text(t, answer)
			require.Equal(t, tc.status, answer.StatusCode, body)
			requireError(t, answer, body, tc.code, tc.message)
		})
	}
	require.Len(t, w.store.Schemas().Deployments, 1)
}

func TestRegistrationAtASilentEndpointTimesOut(t *testing.T) {
	w := newTestServer(t, func(c *Config) { c.discoveryTimeout = time.Millisecond })
	answer := w.ask(t, "POST", "/deployments", `{"uri":"http://silent"}`)
	body := text(t, answer)
	require.Equal(t, http.StatusBadGateway, answer.StatusCode)
	requireError(t, answer, body, "META0003", "discovery of http://silent/ took more than 1ms")
}

func TestRegisterAgainWorksWhileTheEndpointIsDown(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://a/"] = small
	w.ask(t, "POST", "/deployments", `{"uri":"http://a"}`)
	w.offers["http://a/"] = func() (*metadata.Deployment, error) {
		return nil, errcode.New(errcode.META0003, "connection refused")
	}
	answer := w.ask(t, "POST", "/deployments", `{"uri":"http://a"}`)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Contains(t, text(t, answer), `"info":[{"code":"META0003","message":"the address is already registered, and nothing was changed`)
}

const functionARN = "arn:aws:lambda:eu-central-1:123456789012:function:f:1"

func TestRegisterFunction(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers[functionARN] = func() (*metadata.Deployment, error) {
		d, err := small()
		d.Bidirectional, d.Compression = false, "Zstd"
		d.Services[0].Options.InactivityTimeout = ptr(time.Minute)
		return d, err
	}
	created := w.ask(t, "POST", "/deployments", `{"arn":"`+functionARN+`","assume_role_arn":"arn:aws:iam::1:role/r"}`)
	require.Equal(t, http.StatusCreated, created.StatusCode)
	require.Contains(t, text(t, created), `"info":[{"code":"RT0021"`)
	require.Equal(t, []discovery.Request{{ARN: functionARN, AssumeRoleARN: "arn:aws:iam::1:role/r"}}, w.asked)
	goldenJSON(t, "function", text(t, w.ask(t, "GET", "/deployments/dp_10000000000000000000001", "")))

	require.Equal(t, http.StatusOK, w.ask(t, "POST", "/deployments", `{"arn":"`+functionARN+`"}`).StatusCode)
}

func TestRegisterAgainReportsWhatItIgnored(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://a/"] = small
	body := `{"uri":"http://a","additional_headers":{"X-A":"1"},"metadata":{"commit":"a"},"use_http_11":false}`
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", body).StatusCode)
	require.Contains(t, text(t, w.ask(t, "POST", "/deployments", body)), "code and schemas were not compared")
	again := text(t, w.ask(t, "POST", "/deployments", `{"uri":"http://a","additional_headers":{"X-A":"2"},"metadata":{"commit":"b"},"use_http_11":true}`))
	require.Equal(t, http.StatusBadRequest, w.ask(t, "POST", "/deployments", `{"uri":"http://a","additional_headers":{"a":"b\nc"}}`).StatusCode)
	require.Contains(t, again, "registered already with other values of additional_headers, metadata, use_http_11, which stay")
}

// To go back to an earlier version, its deployment is registered again with force.
func TestRegisterAnEarlierDeploymentAgain(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://a/"], w.offers["http://b/"] = small, small
	const earlier = `{"uri":"http://a"}`
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", earlier).StatusCode)
	require.NotContains(t, text(t, w.ask(t, "POST", "/deployments", earlier)), "registered later")
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://b"}`).StatusCode)
	require.Contains(t, text(t, w.ask(t, "POST", "/deployments", earlier)), "go to a deployment that was registered later")
	require.Less(t, w.ask(t, "POST", "/deployments", `{"uri":"http://a","force":true}`).StatusCode, 300)
	require.NotContains(t, text(t, w.ask(t, "POST", "/deployments", earlier)), "registered later")
}

func TestTheNumberOfServicesOfADeploymentIsLimited(t *testing.T) {
	w := newTestServer(t, func(c *Config) { c.Limits.Services = 2 })
	services := 2
	w.offers["http://a/"] = func() (*metadata.Deployment, error) {
		d, _ := small()
		for i := 1; i < services; i++ {
			d.Services = append(d.Services, &metadata.Service{Name: fmt.Sprint("Other", i)})
		}
		return d, nil
	}
	created := w.ask(t, "POST", "/deployments", `{"uri":"http://a"}`)
	require.Equal(t, http.StatusCreated, created.StatusCode, text(t, created))
	services = 3
	for method, request := range map[string][2]string{
		"POST": {"/deployments", `{"uri":"http://a","force":true}`}, "PATCH": {created.Header.Get("Location"), `{"overwrite":true}`},
	} {
		path := "/" + strings.TrimPrefix(request[0], "/")
		rejected := w.ask(t, method, path, request[1])
		require.Equal(t, http.StatusRequestEntityTooLarge, rejected.StatusCode, method)
		body := text(t, rejected)
		require.Contains(t, body, "META0021")
		require.Contains(t, body, "the endpoint announces 3 services, and admin.services-per-deployment-limit is 2")
	}
}
