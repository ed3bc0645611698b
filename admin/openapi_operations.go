package admin

import (
	"maps"
	"net/http"

	"platform/admin/openapi"
	"platform/admin/subscriptions"
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
var descriptions = openapi.Join(subscriptions.Description, openapi.Part{
	Operations: remainingOperations,
	Schemas:    openapi.Schemas{Names: componentNames, Types: typeSchemas, Fields: fieldSchemas, FieldMeanings: fieldMeanings},
})

// remainingOperations describes the routes of this package, by method and path.
var remainingOperations = merge(
	deploymentOperations, serviceOperations, invocationOperations, stateOperations, ruleOperations, queueOperations, journalOperations, flowViewOperations,
	serverOperations, clusterOperations, queryOperations, liveOperations, jobOperationsAPI, securityOperations,
)

func merge[V any](tables ...map[string]V) map[string]V {
	all := map[string]V{}
	for _, table := range tables {
		maps.Copy(all, table)
	}
	return all
}

var deploymentOperations = map[string]operation{
	"POST /deployments": {
		ID: "register_deployment", Tag: "deployment", Body: registration{},
		Summary:   "Discover the services of an endpoint and register them",
		Responses: responses{openapi.Returns(http.StatusCreated, "The address was new", registeredView{}), openapi.Returns(http.StatusOK, "The address was known: unchanged, or replaced if forced", registeredView{})},
		Errors:    []int{400, 409, 415, 422, 502, 503},
	},
	"GET /deployments": {
		ID: "list_deployments", Tag: "deployment", Summary: "List deployments, the oldest first",
		Responses: openapi.OK("All deployments", deploymentList()),
	},
	"GET /deployments/:deployment": {
		ID: "get_deployment", Tag: "deployment", Summary: "Show a deployment and its services as of its revisions",
		Responses: openapi.OK("The deployment", deploymentView{}), Errors: []int{400, 404},
	},
	"PATCH /deployments/:deployment": updateOperation("update_deployment"),
	"PUT /deployments/:deployment":   updateOperation("replace_deployment"),
	"DELETE /deployments/:deployment": {
		ID: "delete_deployment", Tag: "deployment", Summary: "Delete a deployment that is no longer needed",
		Query:     []object{openapi.QueryParameter("force", "Delete it even if invocations need it or it serves new invocations.", object{"type": "boolean", "default": false})},
		Responses: responses{openapi.Returns(http.StatusAccepted, "Deleted", nil)},
		Errors:    []int{400, 404, 409, 503},
	},
}

func updateOperation(id string) operation {
	return operation{
		ID: id, Tag: "deployment", Body: deploymentUpdate{},
		Summary:   "Change a deployment in place: invocations in flight continue at the new address",
		Responses: openapi.OK("The updated deployment", deploymentView{}), Errors: []int{400, 404, 409, 415, 422, 502, 503},
	}
}

var serviceOperations = map[string]operation{
	"GET /services": {
		ID: "list_services", Tag: "service", Summary: "List services, sorted by name",
		Responses: openapi.OK("The latest revision of every service", openapi.ListOf[serviceView]("services")),
	},
	"GET /services/:service": {
		ID: "get_service", Tag: "service", Summary: "Show a service",
		Responses: openapi.OK("Its latest revision", serviceView{}), Errors: []int{404},
	},
	"PATCH /services/:service": {
		ID: "modify_service", Tag: "service", Summary: "Change options of a service until its next revision", Body: serviceChange{},
		Responses: openapi.OK("The updated service", serviceView{}), Errors: []int{400, 404, 415, 422, 503},
	},
	"GET /services/:service/openapi": {
		ID: "get_service_openapi", Tag: "service", Summary: "Describe the calls of a service, for clients of the ingress",
		Responses: openapi.OK("An OpenAPI document", object{"type": "object"}), Errors: []int{404},
	},
	"GET /services/:service/handlers": {
		ID: "list_handlers", Tag: "service_handler", Summary: "List the handlers of a service",
		Responses: openapi.OK("Its handlers", openapi.ListOf[handlerView]("handlers")), Errors: []int{404},
	},
	"GET /services/:service/handlers/:handler": {
		ID: "get_handler", Tag: "service_handler", Summary: "Show a handler",
		Responses: openapi.OK("The handler", handlerView{}), Errors: []int{404},
	},
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
