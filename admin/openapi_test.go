package admin

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin/openapi"
	"platform/internal/target"
	"platform/metadata"
)

func TestOpenAPIDescribesEveryRoute(t *testing.T) {
	w := newTestServer(t, nil)
	document := askDocument(t, w, "/openapi")
	require.Equal(t, "3.1.0", document["openapi"])
	require.Equal(t, "1.0.0", document["info"].(object)["version"])
	paths := document["paths"].(object)
	for _, r := range w.routes() {
		path := openapi.Template(r.Path)
		item, _ := paths[path].(object)
		require.Contains(t, item, strings.ToLower(r.Method), r.Path)
		_, described := descriptions.Operations[r.Method+" "+r.Path]
		require.True(t, described, "no description of %s %s in admin/openapi_*.go", r.Method, r.Path)
	}
	requireSound(t, document)

	// What was written for routes or fields that do not exist would go unnoticed.
	known := map[string]bool{}
	for _, r := range w.routes() {
		known[r.Method+" "+r.Path] = true
	}
	for name := range descriptions.Operations {
		require.True(t, known[name], "operations has %s, which is no route", name)
	}
	schemas := document["components"].(object)["schemas"].(object)
	for _, name := range slices.Concat(slices.Collect(maps.Keys(descriptions.Schemas.FieldMeanings)), slices.Collect(maps.Keys(descriptions.Schemas.Fields))) {
		component, field, _ := strings.Cut(name, ".")
		require.Contains(t, schemas, component)
		require.Contains(t, schemas[component].(object)["properties"], field, component)
	}
}

func TestOpenAPIDescribesTheFieldsOfResponses(t *testing.T) {
	w := seeded(t, nil)
	schemas := askDocument(t, w, "/openapi")["components"].(object)["schemas"].(object)
	for path, name := range map[string]string{
		"/deployments/dp_10000000000000000000002": "Deployment", "/services/Counter": "Service", "/services/Counter/handlers/add": "Handler",
		"/version": "Version", "/errors/RT0016": "ErrorCode", "/services/Nobody": "Error",
	} {
		answered, schema := askDocument(t, w, path), schemas[name].(object)
		for field := range answered {
			require.Contains(t, schema["properties"], field, name)
		}
		required, _ := schema["required"].([]any)
		for _, field := range required {
			require.Contains(t, answered, field, name)
		}
	}
	for name, schema := range schemas { // fields that responses do not contain have no name
		required, _ := schema.(object)["required"].([]any)
		properties, _ := schema.(object)["properties"].(object)
		require.NotContains(t, required, "", name)
		require.NotContains(t, properties, "", name)
	}
	goldenJSON(t, "openapi_service_schema", string(must(json.Marshal(schemas["Service"]))))
}

func TestOpenAPIOfAService(t *testing.T) {
	w := newTestServer(t, func(c *Config) { c.Ingress.Endpoint = "https://calls.example.com/" })
	const recursive = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"properties":{"children":{"type":"array","items":{"$ref":"#"}},"owner":{"$ref":"#/$defs/Person"},"const":{"$ref":"#/$defs/Person"}},
		"default":{"$ref":"#/left/alone"},"$defs":{"Person":{"type":"string"}}}`
	w.offers["http://a/"] = func() (*metadata.Deployment, error) {
		d, err := small()
		d.Services = []*metadata.Service{
			{Name: "Greeter", Documentation: "Greets.", Handlers: []*metadata.Handler{
				{
					Name: "greet", Documentation: "Says hello.",
					Input:  metadata.InputRules{Required: true, ContentType: "application/json", JSONSchema: json.RawMessage(recursive)},
					Output: metadata.OutputRules{ContentType: "application/json", JSONSchema: json.RawMessage(`true`)},
				},
				{Name: "hidden", Options: metadata.Options{Public: ptr(false)}},
				{Name: "raw", Input: metadata.InputRules{Any: true}, Output: metadata.OutputRules{ContentType: "text/plain"}},
			}},
			{Name: "Flow", Type: metadata.Workflow, Handlers: []*metadata.Handler{
				{Name: "run", Type: target.WorkflowRun}, {Name: "see", Type: target.WorkflowShared},
			}},
		}
		return d, err
	}
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://a"}`).StatusCode)

	greeter := askDocument(t, w, "/services/Greeter/openapi")
	requireSound(t, greeter)
	goldenJSON(t, "openapi_greeter", string(must(json.Marshal(greeter))))

	flow := askDocument(t, w, "/services/Flow/openapi")
	requireSound(t, flow)
	require.Equal(t, []string{
		"/platform/call/Flow/{key}/run", "/platform/call/Flow/{key}/see",
		"/platform/invocation/Flow/{key}/see/{idempotencyKey}/attach", "/platform/invocation/Flow/{key}/see/{idempotencyKey}/output",
		"/platform/send/Flow/{key}/run", "/platform/send/Flow/{key}/see",
		"/platform/workflow/Flow/{key}/attach", "/platform/workflow/Flow/{key}/output",
	}, slices.Sorted(maps.Keys(flow["paths"].(object))))

	answer := w.ask(t, "GET", "/services/Nobody/openapi", "")
	body := text(t, answer)
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
	requireError(t, answer, body, "", "The requested service 'Nobody' does not exist")
}

func askDocument(t *testing.T, w *testServer, path string) object {
	t.Helper()
	var document object
	require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", path, ""))), &document))
	return document
}

// requireSound checks what tools rely on: references lead somewhere, operations have
// names of their own, paths declare exactly their parameters.
func requireSound(t *testing.T, document object) {
	t.Helper()
	eachObject(document, func(o object) {
		if ref, ok := o["$ref"].(string); ok && ref != "#/left/alone" {
			require.NotNil(t, resolve(document, ref), ref)
		}
	})
	var ids []string
	for path, item := range document["paths"].(object) {
		for method, op := range item.(object) {
			op := op.(object)
			require.NotEmpty(t, op["responses"], path)
			require.NotEmpty(t, op["summary"], path)
			id, _ := op["operationId"].(string)
			require.NotContains(t, ids, id, "%s %s", method, path)
			ids = append(ids, id)
			var declared []string
			list, _ := op["parameters"].([]any)
			for _, p := range list {
				p := p.(object)
				if ref, ok := p["$ref"].(string); ok {
					p = resolve(document, ref).(object)
				}
				if p["in"] == "path" {
					declared = append(declared, "{"+p["name"].(string)+"}")
				}
			}
			require.ElementsMatch(t, regexp.MustCompile(`\{[^}]*\}`).FindAllString(path, -1), declared, "%s %s", method, path)
		}
	}
}

func resolve(document any, ref string) any {
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		if o, ok := document.(object); ok {
			document = o[part]
		} else {
			return nil
		}
	}
	return document
}

func eachObject(value any, visit func(object)) {
	switch v := value.(type) {
	case object:
		visit(v)
		for _, part := range v {
			eachObject(part, visit)
		}
	case []any:
		for _, part := range v {
			eachObject(part, visit)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
