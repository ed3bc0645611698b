package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/openapi"
	"platform/admin/rest"
)

// Short names for the tables of descriptions.
type (
	object    = openapi.Object
	operation = openapi.Operation
	responses = []openapi.Response
)

// openAPI responds with the OpenAPI document of this API.
func (s *Server) openAPI(c echo.Context) error {
	s.described.Do(func() { s.description = describeAPI(s.routes(), s.cfg.Build.Version) })
	return rest.Respond(c, http.StatusOK, s.description)
}

// describeAPI generates the OpenAPI document of routes.
func describeAPI(routes []rest.Route, version string) object {
	var described []openapi.Route
	for _, r := range routes {
		if r.Path != metricsPath { // not for clients of the API
			described = append(described, openapi.Route{Method: r.Method, Path: r.Path, Operation: descriptions.Operations[r.Method+" "+r.Path]})
		}
	}
	return adminAPI.Document(described, version)
}

var adminAPI = openapi.API{
	Title:          "Admin API",
	Description:    "Deployments, services and invocations of a durable execution server. Every path is also available below /v2, /v3 and /v4.",
	Tags:           tags,
	PathParameters: pathParameters,
	Errors:         errorMeanings,
	ErrorBody:      rest.ErrorBody{},
	Schemas:        descriptions.Schemas,
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
