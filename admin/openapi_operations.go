package admin

import (
	"maps"
	"net/http"

	"platform/admin/deployments"
	"platform/admin/flow"
	"platform/admin/openapi"
	"platform/admin/subscriptions"
	"platform/admin/tokens"
)

// tags are the groups of operations.
var tags = []object{
	{"name": "deployment", "description": "Registered versions of service endpoints"},
	{"name": "service", "description": "Services, as of their latest revision"},
	{"name": "service_handler", "description": "Handlers of services"},
	{"name": "invocation", "description": "Invocations, and what an operator can do with them"},
	{"name": "object", "description": "Keys of virtual objects and workflows"},
	{"name": "failure", "description": "Failed invocations in groups of the same cause"},
	{"name": "vqueue", "description": "Queues of invocations that wait for flow control"},
	{"name": "rule", "description": "Rules of flow control"},
	{"name": "introspection", "description": "SQL over the state of the system"},
	{"name": "cluster_health", "description": "State of the cluster"},
	{"name": "cluster", "description": "Nodes, partitions and configuration of the cluster"},
	{"name": "health", "description": "Readiness of this node"},
	{"name": "version", "description": "Version of this server"},
	{"name": "job", "description": "Operations on many invocations"},
	{"name": "subscription", "description": "Event subscriptions: Kafka topics whose records are delivered to handlers"},
	{"name": "kafka_cluster", "description": "Kafka clusters that subscriptions read from"},
	{"name": "security", "description": "Tokens and the audit log"},
	{"name": "live", "description": "Notices of changes"},
	{"name": "error", "description": "Explanations of error codes"},
}

// errorMeanings describes the statuses of errors.
var errorMeanings = map[int]string{
	http.StatusBadRequest:           "The request is malformed or invalid",
	http.StatusUnauthorized:         "The token is missing, unknown, expired or revoked",
	http.StatusForbidden:            "The token does not permit it",
	http.StatusNotFound:             "Not found",
	http.StatusConflict:             "Conflicts with the current state",
	http.StatusGone:                 "The input is no longer kept",
	http.StatusUnsupportedMediaType: "The body is not application/json",
	http.StatusUnprocessableEntity:  "A value is invalid",
	http.StatusTooEarly:             "It has not started yet",
	http.StatusTooManyRequests:      "Too many concurrent requests; retry after the time in Retry-After",
	http.StatusBadGateway:           "The endpoint cannot be reached or its response is invalid",
	http.StatusServiceUnavailable:   "Temporarily unavailable; retry later",
}

// descriptions are those of all routes.
var descriptions = openapi.Join(deployments.Description, flow.Description, subscriptions.Description, tokens.Description, openapi.Part{
	Operations: remainingOperations,
	Schemas:    openapi.Schemas{Names: componentNames, Types: typeSchemas, Fields: fieldSchemas, FieldMeanings: fieldMeanings},
})

// remainingOperations describes the routes of this package, by method and path.
var remainingOperations = merge(
	invocationOperations, stateOperations, journalOperations,
	serverOperations, clusterOperations, queryOperations, liveOperations, jobOperationsAPI, auditOperations,
)

func merge[V any](tables ...map[string]V) map[string]V {
	all := map[string]V{}
	for _, table := range tables {
		maps.Copy(all, table)
	}
	return all
}

var serverOperations = map[string]operation{
	"GET /health": {
		ID: "health", Tag: "health", Summary: "Check whether this node is ready for requests",
		Responses: openapi.OK("The node is ready. There is a body only if security.mode is open", nil), Errors: []int{503},
	},
	"GET /version": {
		ID: "version", Tag: "version", Summary: "Show the build of the server and the versions of its API",
		Responses: openapi.OK("The versions", versionView{}),
	},
	"GET /openapi": {
		ID: "openapi", Tag: "version", Summary: "Describe this API", Responses: openapi.OK("An OpenAPI document", object{"type": "object"}),
	},
	"GET /errors": {
		ID: "list_errors", Tag: "error", Summary: "List all error codes",
		Responses: openapi.OK("The catalogue", openapi.ListOf[errorView]("errors")),
	},
	"GET /errors/:code": {
		ID: "explain_error", Tag: "error", Summary: "Explain an error code",
		Responses: openapi.OK("What it means and what to do", errorView{}), Errors: []int{404},
	},
}
