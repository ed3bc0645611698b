package admin

import (
	"maps"
	"net/http"
)

// tags returns the groups of operations.
func tags() []object {
	return []object{
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
}

// refusalMeanings describes the statuses of errors.
var refusalMeanings = map[int]string{
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

// operations describes the routes, by method and path.
var operations = merge(
	deploymentOperations, serviceOperations, invocationOperations, stateOperations, ruleOperations, queueOperations, journalOperations, flowViewOperations,
	serverOperations, clusterOperations, queryOperations, liveOperations, jobOperationsAPI, securityOperations, subscriptionOperations,
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
		id: "register_deployment", tag: "deployment", body: registration{},
		summary:  "Discover the services of an endpoint and register them",
		answers:  []reply{{http.StatusCreated, "The address was new", registeredView{}}, {http.StatusOK, "The address was known: unchanged, or replaced if forced", registeredView{}}},
		refusals: []int{400, 409, 415, 422, 502, 503},
	},
	"GET /deployments": {
		id: "list_deployments", tag: "deployment", summary: "List deployments, the oldest first",
		answers: []reply{{http.StatusOK, "All deployments", deploymentList()}},
	},
	"GET /deployments/:deployment": {
		id: "get_deployment", tag: "deployment", summary: "Show a deployment and its services as of its revisions",
		answers: []reply{{http.StatusOK, "The deployment", deploymentView{}}}, refusals: []int{400, 404},
	},
	"PATCH /deployments/:deployment": updateOperation("update_deployment"),
	"PUT /deployments/:deployment":   updateOperation("replace_deployment"),
	"DELETE /deployments/:deployment": {
		id: "delete_deployment", tag: "deployment", summary: "Delete a deployment that is no longer needed",
		query:    []object{queryParameter("force", "Delete it even if invocations need it or it serves new invocations.", object{"type": "boolean", "default": false})},
		answers:  []reply{{http.StatusAccepted, "Deleted", nil}},
		refusals: []int{400, 404, 409, 503},
	},
}

func updateOperation(id string) operation {
	return operation{
		id: id, tag: "deployment", body: deploymentUpdate{},
		summary: "Change a deployment in place: invocations in flight continue at the new address",
		answers: []reply{{http.StatusOK, "The updated deployment", deploymentView{}}}, refusals: []int{400, 404, 415, 422, 502, 503},
	}
}

var serviceOperations = map[string]operation{
	"GET /services": {
		id: "list_services", tag: "service", summary: "List services, sorted by name",
		answers: []reply{{http.StatusOK, "The latest revision of every service", listOf[serviceView]("services")}},
	},
	"GET /services/:service": {
		id: "get_service", tag: "service", summary: "Show a service",
		answers: []reply{{http.StatusOK, "Its latest revision", serviceView{}}}, refusals: []int{404},
	},
	"PATCH /services/:service": {
		id: "modify_service", tag: "service", summary: "Change options of a service until its next revision", body: serviceChange{},
		answers: []reply{{http.StatusOK, "The updated service", serviceView{}}}, refusals: []int{400, 404, 415, 422, 503},
	},
	"GET /services/:service/openapi": {
		id: "get_service_openapi", tag: "service", summary: "Describe the calls of a service, for clients of the ingress",
		answers: []reply{{http.StatusOK, "An OpenAPI document", object{"type": "object"}}}, refusals: []int{404},
	},
	"GET /services/:service/handlers": {
		id: "list_handlers", tag: "service_handler", summary: "List the handlers of a service",
		answers: []reply{{http.StatusOK, "Its handlers", listOf[handlerView]("handlers")}}, refusals: []int{404},
	},
	"GET /services/:service/handlers/:handler": {
		id: "get_handler", tag: "service_handler", summary: "Show a handler",
		answers: []reply{{http.StatusOK, "The handler", handlerView{}}}, refusals: []int{404},
	},
}

var serverOperations = map[string]operation{
	"GET /health": {
		id: "health", tag: "health", summary: "Check whether this node is ready for requests",
		answers: []reply{{http.StatusOK, "The node is ready. There is a body only if security.mode is open", nil}}, refusals: []int{503},
	},
	"GET /version": {
		id: "version", tag: "version", summary: "Show the build of the server and the versions of its API",
		answers: []reply{{http.StatusOK, "The versions", versionView{}}},
	},
	"GET /openapi": {
		id: "openapi", tag: "version", summary: "Describe this API", answers: []reply{{http.StatusOK, "An OpenAPI document", object{"type": "object"}}},
	},
	"GET /errors": {
		id: "list_errors", tag: "error", summary: "List all error codes",
		answers: []reply{{http.StatusOK, "The catalogue", listOf[errorView]("errors")}},
	},
	"GET /errors/:code": {
		id: "explain_error", tag: "error", summary: "Explain an error code",
		answers: []reply{{http.StatusOK, "What it means and what to do", errorView{}}}, refusals: []int{404},
	},
}
