package deployments

import (
	"net/http"
	"reflect"
	"strings"

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

// Description describes the routes for the OpenAPI document of the admin API.
var Description = openapi.Part{
	Operations: operations,
	Schemas:    openapi.Schemas{Names: componentNames, Fields: fieldSchemas, FieldMeanings: fieldMeanings},
}

// describeCalls responds with the OpenAPI document of a service's ingress requests.
func (s *Server) describeCalls(c echo.Context) error {
	service, err := findService(s.registry.Schemas(), c)
	if err != nil {
		return err
	}
	ingress := strings.TrimSuffix(s.cfg.IngressEndpoint(c.Request()), "/")
	return rest.Respond(c, http.StatusOK, openapi.Service(service, s.cfg.Defaults(), ingress))
}

var componentNames = map[reflect.Type]string{
	reflect.TypeFor[registration]():      "RegisterDeploymentRequest",
	reflect.TypeFor[registeredView]():    "RegisterDeploymentResponse",
	reflect.TypeFor[deploymentUpdate]():  "UpdateDeploymentRequest",
	reflect.TypeFor[deploymentView]():    "Deployment",
	reflect.TypeFor[serviceRevision]():   "ServiceRevision",
	reflect.TypeFor[serviceView]():       "Service",
	reflect.TypeFor[overriddenView]():    "OverriddenOptions",
	reflect.TypeFor[serviceChange]():     "ModifyServiceRequest",
	reflect.TypeFor[retryChange]():       "ModifyRetryPolicy",
	reflect.TypeFor[retryView]():         "RetryPolicy",
	reflect.TypeFor[retryOverrideView](): "HandlerRetryPolicy",
	reflect.TypeFor[handlerView]():       "Handler",
}

var operations = map[string]operation{
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

func updateOperation(id string) operation {
	return operation{
		ID: id, Tag: "deployment", Body: deploymentUpdate{},
		Summary:   "Change a deployment in place: invocations in flight continue at the new address",
		Responses: openapi.OK("The updated deployment", deploymentView{}), Errors: []int{400, 404, 409, 415, 422, 502, 503},
	}
}

// deploymentList is the list of deployments that contain only the names of services.
func deploymentList() object {
	return object{
		"type": "object", "required": []string{"deployments"},
		"properties": object{"deployments": object{"type": "array", "items": object{
			"description": "A Deployment, whose services have only their names and revisions.",
			"type":        "object", "required": []string{"id", "services"},
			"properties": object{
				"id":       object{"type": "string"},
				"services": object{"type": "array", "items": reflect.TypeFor[serviceRevision]()},
			},
			"additionalProperties": true,
		}}},
	}
}

var fieldSchemas = map[string]object{
	"Deployment.services":                {"type": "array", "items": object{"$ref": "#/components/schemas/Service"}},
	"Deployment.protocol_type":           {"type": "string", "enum": []string{"BidiStream", "RequestResponse"}},
	"Deployment.http_version":            {"type": "string", "enum": []string{"HTTP/2.0", "HTTP/1.1"}},
	"Service.ty":                         {"type": "string", "enum": []string{"Service", "VirtualObject", "Workflow"}},
	"Handler.ty":                         {"type": "string", "enum": []string{"Exclusive", "Shared", "Workflow"}},
	"RetryPolicy.on_max_attempts":        {"type": "string", "enum": onMaxAttempts},
	"HandlerRetryPolicy.on_max_attempts": {"type": "string", "enum": onMaxAttempts},
	"ModifyRetryPolicy.on_max_attempts":  {"type": "string", "enum": onMaxAttempts},
	"ModifyRetryPolicy.max_attempts":     {"anyOf": []object{{"type": "integer", "minimum": 1}, {"type": "null"}}},
	"RegisterDeploymentRequest.auth":     {"type": "null"},
	"ModifyServiceRequest.ingress_auth":  {"type": "string", "enum": []string{"none", "token", "jwt", "mtls"}},
}

var onMaxAttempts = []string{"Pause", "Kill"}

var fieldMeanings = map[string]string{
	"RegisterDeploymentRequest.uri":                      "Absolute address of an HTTP endpoint. Either this or arn is required.",
	"RegisterDeploymentRequest.arn":                      "ARN of a function, with its version.",
	"RegisterDeploymentRequest.additional_headers":       "Sent when the endpoint is discovered and with every attempt.",
	"RegisterDeploymentRequest.metadata":                 "Labels stored with the deployment, such as a commit.",
	"RegisterDeploymentRequest.use_http_11":              "Use HTTP/1.1 for the endpoint. Attempts then run in request-response mode.",
	"RegisterDeploymentRequest.force":                    "Replace the deployment that has this address. Implies breaking. Below /v2 the default is true.",
	"RegisterDeploymentRequest.breaking":                 "Allow changes of the type of services.",
	"RegisterDeploymentRequest.dry_run":                  "Discover and validate, but store nothing.",
	"RegisterDeploymentRequest.assume_role_arn":          "Role to assume to invoke the function.",
	"UpdateDeploymentRequest.uri":                        "New address of an HTTP endpoint.",
	"UpdateDeploymentRequest.arn":                        "New ARN of a function, with its version.",
	"UpdateDeploymentRequest.additional_headers":         "Replaces all headers.",
	"UpdateDeploymentRequest.assume_role_arn":            "Role to assume to invoke the function; empty for none.",
	"UpdateDeploymentRequest.overwrite":                  "Replace the registered services by those that the endpoint offers, even if that breaks invocations in flight. Otherwise the endpoint must be compatible with the registered services, which do not change.",
	"UpdateDeploymentRequest.dry_run":                    "Discover and validate, but store nothing.",
	"ModifyServiceRequest.public":                        "Whether the service can be called through the ingress.",
	"ModifyServiceRequest.idempotency_retention":         "How long results of calls with an idempotency key are kept.",
	"ModifyServiceRequest.workflow_completion_retention": "How long a finished workflow is kept. Workflows only.",
	"ModifyServiceRequest.journal_retention":             "How long journals are kept after completion.",
	"ModifyServiceRequest.inactivity_timeout":            "How long an attempt may be inactive before it is asked to suspend.",
	"ModifyServiceRequest.abort_timeout":                 "How long an attempt may take to suspend before it is aborted.",
	"ModifyServiceRequest.enable_lazy_state":             "Send state only when it is read.",
	"Service.deployment_id":                              "Deployment that serves new invocations.",
	"Service.journal_retention":                          "Absent if journals are not kept.",
	"RetryPolicy.initial_interval":                       "Duration before the first retry, such as 1m 30s or PT90S; no retry follows sooner than after 10 ms, whatever the policy or the endpoint says.",
	"RetryPolicy.max_attempts":                           "Includes the first attempt. null: unlimited.",
	"Handler.public":                                     "Whether it can be called through the ingress: both service and handler must be public.",
	"Deployment.metadata":                                "Labels given at registration.",
	"Service.overridden":                                 "Options of this revision that operators have changed, with the values that its code or the server would give them. Registering the service again restores these.",
	"Service.server_defaults":                            "Names of the options that neither the code nor an operator has set: the configuration of the server determines them.",
	"RegisterDeploymentResponse.info":                    "Notices about settings without the expected effect.",
	"ModifyServiceRequest.ingress_auth":                  "What callers must present: nothing, a token, a token of the identity provider, or a client certificate. Later revisions keep it, also after the last deployment was deleted. Without it ingress.auth applies.",
	"ModifyServiceRequest.forward_headers":               "Headers with credentials of callers, such as authorization, that handlers get and that are stored with invocations, instead of ingress.forward-headers. Later revisions keep it, also after the last deployment was deleted.",
	"Service.forward_headers":                            "Headers with credentials of callers that handlers get. Absent if ingress.forward-headers applies.",
	"Service.ingress_auth":                               "What callers must present. Absent if ingress.auth applies.",
}
