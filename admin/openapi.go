package admin

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
)

// object is a JSON object of an OpenAPI document.
type object = map[string]any

const openAPIVersion = "3.1.0"

// openAPI responds with the OpenAPI document of this API.
func (s *Server) openAPI(c echo.Context) error {
	s.described.Do(func() { s.description = describeAPI(s.routes(), s.cfg.Build.Version) })
	return rest.Respond(c, http.StatusOK, s.description)
}

// describeAPI generates the OpenAPI document of routes. A route without an entry in operations is
// listed without a description.
func describeAPI(routes []route, version string) object {
	schemas := newSchemas()
	paths := object{}
	for _, r := range routes {
		if r.path == metricsPath {
			continue // not for clients of the API
		}
		path, parameters := templated(r.path)
		item, known := paths[path].(object)
		if !known {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(r.method)] = operationOf(r).describe(r, parameters, schemas)
	}
	return object{
		"openapi": openAPIVersion,
		"info": object{
			"title": "Admin API", "version": version,
			"description": "Deployments, services and invocations of a durable execution server. Every path is also available below /v2, /v3 and /v4.",
		},
		"tags":       tags(),
		"paths":      paths,
		"components": object{"schemas": schemas.components},
	}
}

// templated converts a path such as /services/:service to /services/{service} and returns its
// parameters.
func templated(path string) (string, []object) {
	var parameters []object
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		name, ok := strings.CutPrefix(segment, ":")
		if !ok {
			continue
		}
		segments[i] = "{" + name + "}"
		parameters = append(parameters, object{
			"name": name, "in": "path", "required": true, "schema": object{"type": "string"}, "description": pathParameters[name],
		})
	}
	return strings.Join(segments, "/"), parameters
}

var pathParameters = map[string]string{
	"deployment":      "id of a deployment, dp_1…",
	"service":         "name of a service",
	"key":             "key of an object or workflow; slashes are encoded as %2F",
	"handler":         "name of a handler of the service",
	"invocation_id":   "id of an invocation, inv_1…",
	"job":             "id of a job, job_…",
	"token":           "id or name of a token",
	"group":           "id of a failure group, fg_…",
	"code":            "an error code such as RT0016",
	"vqueue_id":       "id of a vqueue, vq_1…",
	"scope":           "scope, a name that callers choose",
	"pattern":         "pattern of a rule: scope, scope/l1 or scope/l1/l2, * for any; its slashes are encoded as %2F",
	"node":            "name or id of a node, such as N1; a number is an id",
	"partition":       "number of a partition, from 0",
	"subscription":    "id of a subscription, sub_1…",
	"topic":           "name of a topic",
	"topic_partition": "number of a partition of the topic",
	"offset":          "offset of a record",
	"kafka_cluster":   "name of a Kafka cluster",
	"operation":       "the remedy, or the requested id",
}

// operation describes the request and the responses of a route.
type operation struct {
	id, tag, summary string
	query            []object // parameters
	anyQuery         bool     // other parameters are ignored
	body             any      // a value of the type of the request body, or its schema; nil if there is none
	answers          []reply
	refusals         []int
}

// reply is a successful response.
type reply struct {
	status  int
	meaning string
	body    any // as in operation
}

func operationOf(r route) operation {
	if op, known := operations[r.method+" "+r.path]; known {
		return op
	}
	first := strings.Split(strings.TrimPrefix(r.path, "/"), "/")[0]
	return operation{tag: strings.TrimSuffix(first, "s"), summary: r.method + " " + r.path, answers: []reply{{http.StatusOK, "Done", nil}}}
}

func (op operation) describe(r route, parameters []object, schemas *schemaSet) object {
	answers := object{}
	for _, a := range op.answers {
		described := object{"description": a.meaning}
		switch a.body.(type) {
		case nil:
		case []byte:
			described["content"] = object{"application/octet-stream": object{}}
		default:
			described["content"] = jsonContent(schemas.describe(a.body, true))
		}
		answers[statusText(a.status)] = described
	}
	for _, status := range op.refusals {
		answers[statusText(status)] = object{
			"description": refusalMeanings[status], "content": jsonContent(schemas.describe(rest.ErrorBody{}, true)),
		}
	}
	described := object{"tags": []string{op.tag}, "summary": op.summary, "responses": answers}
	if op.id != "" {
		described["operationId"] = op.id
	}
	if all := append(parameters, op.query...); len(all) > 0 {
		described["parameters"] = all
	}
	if op.body != nil {
		described["requestBody"] = object{"required": true, "content": jsonContent(schemas.describe(op.body, false))}
	}
	return described
}

func jsonContent(schema object) object { return object{"application/json": object{"schema": schema}} }

// queryParameter describes a query parameter.
func queryParameter(name, meaning string, schema object) object {
	return object{"name": name, "in": "query", "description": meaning, "schema": schema}
}
