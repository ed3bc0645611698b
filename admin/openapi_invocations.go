package admin

import (
	"net/http"
	"slices"

	"platform/admin/explain"
	"platform/admin/openapi"
	"platform/admin/rest"
)

var invocationOperations = map[string]operation{
	"GET /invocations": {
		ID: "list_invocations", Tag: "invocation", Summary: "List the invocations that match all filters",
		Query: slices.Concat(filterParameters, []object{
			openapi.QueryParameter("sort", "Sort by creation or by the last change of status.", object{"type": "string", "enum": orders, "default": orders[0]}),
			openapi.QueryParameter("oldest_first", "List the oldest first. By default the newest come first.", object{"type": "boolean", "default": false}),
			openapi.Limit("invocations"),
			openapi.Cursor,
			partialParameter,
		}),
		Responses: openapi.OK("One page", Page{}), Errors: []int{400, 503},
	},
	"GET /awakeables": {
		ID: "list_awakeables", Tag: "invocation", Summary: "List the awakeables that invocations wait for, those of the longest suspended invocation first. A page can be empty and have a next one",
		Query:     slices.Concat(awakeableParameters, []object{openapi.Limit("awakeables"), openapi.Cursor}),
		Responses: openapi.OK("One page", AwakeablePage{}), Errors: []int{400, 503},
	},
	"GET /invocations/counts": {
		ID: "count_invocations", Tag: "invocation", Summary: "Count the invocations that match all filters, by status, result and handler",
		Query:     slices.Concat(filterParameters, []object{partialParameter}),
		Responses: openapi.OK("The numbers", Counts{}), Errors: []int{400, 503},
	},
	"GET /failures": {
		ID: "list_failures", Tag: "failure", Summary: "List failed invocations in groups of the same cause, the latest failure first; and the topic partitions of event subscriptions whose next record cannot be delivered",
		Query: slices.Concat(filterParameters, []object{
			openapi.Limit("groups"),
			openapi.Cursor,
			openapi.QueryParameter("muted", "Only groups that are muted, or only those that are not.", object{"type": "boolean"}),
			partialParameter,
		}),
		Responses: openapi.OK("One page", failurePage{}), Errors: []int{400, 503},
	},
	"GET /failures/:group": {
		ID: "get_failure", Tag: "failure", Summary: "Show a failure group",
		Responses: openapi.OK("The group", FailureGroup{}), Errors: []int{400, 404, 503},
	},
	"GET /objects": {
		ID: "list_objects", Tag: "object", Summary: "List the keys of a virtual object or workflow that have state or are held, in their order, with the size of the state",
		Query: []object{
			{"name": "service", "in": "query", "required": true, "description": "Name of a virtual object or workflow.", "schema": object{"type": "string"}},
			openapi.QueryParameter("scope", "Scope of the keys; without it, those without a scope.", object{"type": "string"}),
			openapi.QueryParameter("prefix", "Beginning of the keys.", object{"type": "string"}),
			openapi.Limit("keys"),
			openapi.Cursor,
		},
		Responses: openapi.OK("One page", objectPage{}), Errors: []int{400, 404, 503},
	},
	"GET /services/:service/scopes": {
		ID: "list_scopes", Tag: "object", Summary: "List the scopes in which a virtual object or workflow has keys",
		Responses: openapi.OK("The scopes", scopeList{}), Errors: []int{400, 404, 503},
	},
	"GET /objects/:service/:key": {
		ID: "get_object", Tag: "object", Summary: "Show a key of a virtual object or workflow: the size of its state, its holder, the invocations that wait for it, promises",
		Query:     []object{openapi.QueryParameter("scope", "Scope of the key.", object{"type": "string"})},
		Responses: openapi.OK("The key", ObjectDetail{}), Errors: []int{400, 404, 503},
	},
	"PATCH /failures/:group": {
		ID: "mark_failure", Tag: "failure", Summary: "Mute or unmute a failure group, or change its note. Needs feature level 4",
		Body:      failureMarkRequest{},
		Responses: openapi.OK("The group", FailureGroup{}), Errors: []int{400, 404, 409, 422, 503},
	},
	"GET /invocations/:invocation_id": {
		ID: "get_invocation", Tag: "invocation", Summary: "Show an invocation",
		Query:     []object{openapi.QueryParameter("journal", "Include its journal.", object{"type": "boolean", "default": false})},
		Responses: openapi.OK("The invocation", Invocation{}), Errors: []int{400, 404, 503},
	},
	"GET /invocations/:invocation_id/explain": {
		ID: "explain_invocation", Tag: "invocation", Summary: "Explain why an invocation is in its status, what it waits for, and what to do next",
		Responses: openapi.OK("The explanation", explain.Explanation{}), Errors: []int{400, 404, 429, 503},
	},
	"DELETE /invocations/:invocation_id": {
		ID: "end_invocation", Tag: "invocation", Summary: "Cancel, kill or purge an invocation (deprecated)",
		Query:     []object{openapi.QueryParameter("mode", "The operation.", object{"type": "string", "enum": []string{"Cancel", "Kill", "Purge"}, "default": "Cancel"})},
		Responses: responses{openapi.Returns(http.StatusAccepted, "Accepted", nil)}, Errors: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/cancel": {
		ID: "cancel_invocation", Tag: "invocation", Summary: "Request the cancellation of an invocation and of the calls it waits for; its handler can clean up",
		Responses: responses{openapi.Returns(http.StatusAccepted, "Requested; the handler decides how the invocation ends", nil), openapi.Returns(http.StatusOK, "The invocation had not started and has ended", nil)}, Errors: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/kill": {
		ID: "kill_invocation", Tag: "invocation", Summary: "End an invocation and the calls it waits for immediately, without cleanup by the handler",
		Responses: openapi.OK("The invocation has ended", nil), Errors: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/pause": {
		ID: "pause_invocation", Tag: "invocation", Summary: "Stop an invocation until it is resumed", Query: []object{openapi.PauseReason},
		Responses: responses{openapi.Returns(http.StatusAccepted, "The pause was requested", nil), openapi.Returns(http.StatusOK, "The invocation was already paused", nil)}, Errors: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/resume": {
		ID: "resume_invocation", Tag: "invocation", Summary: "Resume an invocation, or retry it immediately", Query: deploymentParameters("The default is Keep."),
		Responses: openapi.OK("The invocation was resumed", nil), Errors: []int{400, 404, 409, 425, 503},
	},
	"PATCH /invocations/:invocation_id/purge": {
		ID: "purge_invocation", Tag: "invocation", Summary: "Delete a completed invocation: its result, journal, idempotency key and workflow state",
		Responses: openapi.OK("The invocation was deleted", nil), Errors: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/purge-journal": {
		ID: "purge_journal", Tag: "invocation", Summary: "Delete the journal of a completed invocation",
		Responses: openapi.OK("The journal was deleted", nil), Errors: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/restart-as-new": {
		ID: "restart_as_new_invocation", Tag: "invocation", Summary: "Create a new invocation from a completed one",
		Query: append(deploymentParameters("The default is Latest."),
			openapi.QueryParameter("from", "Index of the last journal entry to copy; completions of the copied commands are included. 0: the input only.",
				object{"type": "integer", "format": "int32", "minimum": 0, "default": 0})),
		Responses: openapi.OK("The new invocation", object{
			"type": "object", "required": []string{"new_invocation_id"}, "properties": object{"new_invocation_id": object{"type": "string"}},
		}),
		Errors: []int{400, 404, 409, 410, 422, 425, 503},
	},
	"POST /invocations/:invocation_id/copy": {
		ID: "copy_invocation", Tag: "invocation", Summary: "Start a new invocation of the same handler, key and scope, with the same headers and an edited input. Not for workflows",
		Body:      copyRequest{},
		Responses: openapi.OK("The new invocation", restarted{}),
		Errors:    []int{400, 404, 410, 422, 429, 503},
	},
	"POST /internal/services/:service/serdes/:operation/:serde": {
		ID: "convert_payload", Tag: "service", Summary: "Convert a payload between JSON and the format of a serializer of the service, by its endpoint: encode from JSON, decode to JSON. Slashes in the name of the serializer are written as %2F",
		Query:     []object{openapi.QueryParameter("deployment", "The deployment that converts; by default that of the service.", object{"type": "string"})},
		Responses: openapi.OK("The converted payload, with the content type that the endpoint gave it", nil),
		Errors:    []int{400, 404, 413, 502, 503},
	},
	"POST /internal/invocations_batch_operations/:operation": {
		ID: "batch_operation", Tag: "invocation", Summary: "Apply an operation to up to 1000 invocations: cancel, kill, pause, resume, purge, purge-journal or restart-as-new",
		Body: object{"type": "object", "required": []string{"invocation_ids"}, "properties": object{
			"invocation_ids": object{"type": "array", "items": object{"type": "string"}, "maxItems": 1000},
			"deployment":     object{"type": "string", "description": "Keep, Latest or the id of a deployment; for resume and restart-as-new"},
			"reason":         object{"type": "string", "description": "For pause: why, for other operators; one line of up to 512 bytes", "maxLength": rest.MaxReason},
		}},
		Responses: openapi.OK("The outcome for each invocation", object{"type": "object", "required": []string{"succeeded", "failed"}, "properties": object{
			"succeeded": object{
				"type": "array", "description": "Ids; for restart-as-new objects with old_invocation_id and new_invocation_id.",
				"items": object{"type": []string{"string", "object"}},
			},
			"requested": object{
				"type": "array", "description": "For cancel: ids of the invocations whose cancellation was requested and that have not ended yet.",
				"items": object{"type": "string"},
			},
			"failed": object{"type": "array", "items": object{"type": "object", "properties": object{
				"invocation_id": object{"type": "string"}, "error": object{"type": "string"},
			}}},
		}}),
		Errors: []int{400, 404, 415, 422},
	},
}

// textList is the schema of parameters that can be repeated.
var textList = object{"type": "array", "items": object{"type": "string"}}

// deploymentParameters describes the parameters that select a deployment; fallback describes the
// default.
func deploymentParameters(fallback string) []object {
	return []object{
		openapi.QueryParameter("deployment", "Keep, Latest or the id of a deployment. "+fallback, object{"type": "string"}),
		openapi.QueryParameter("Id", "Id of a deployment, as deployment={id}.", object{"type": "string"}),
	}
}

var stateOperations = map[string]operation{
	"GET /services/:service/state": {
		ID: "get_state", Tag: "service", Summary: "Show the state of an object or workflow",
		Query: []object{
			openapi.QueryParameter("object_key", "Key of the object or workflow.", object{"type": "string"}),
			openapi.QueryParameter("scope", "Scope of a scoped object.", object{"type": "string"}),
		},
		Responses: openapi.OK("The state", object{"type": "object", "properties": object{
			"version": object{"type": "string", "description": "Version of the state, for conditional changes"},
			"state": object{"type": "array", "items": object{"type": "object", "properties": object{
				"key": object{"type": "string"}, "value_utf8": object{"type": "string"}, "value": object{"type": "string", "contentEncoding": "base64"},
			}}},
		}}),
		Errors: []int{400, 404, 503},
	},
	"POST /services/:service/state": {
		ID: "modify_state", Tag: "service", Summary: "Replace the state of an object or workflow, once its key is free",
		Query: []object{openapi.QueryParameter("wait", "Respond once the change is made.", object{"type": "boolean", "default": false})},
		Body: object{"type": "object", "required": []string{"object_key", "new_state"}, "properties": object{
			"object_key": object{"type": "string"},
			"new_state": object{"type": "object", "description": "The complete new state.", "additionalProperties": object{"oneOf": []object{
				{"type": "string"}, {"type": "array", "items": object{"type": "integer", "minimum": 0, "maximum": 255}},
			}}},
			"version": object{"type": "string", "description": "Change the state only if it has this version."},
			"scope":   object{"type": "string", "description": "Scope of a scoped object."},
		}},
		Responses: responses{openapi.Returns(http.StatusAccepted, "Made or queued; the operation id identifies the change", stateChange)},
		Errors:    []int{400, 404, 409, 415, 422, 503},
	},
	"GET /state-updates/:operation": {
		ID: "get_state_update", Tag: "service", Summary: "Show the status of a state change",
		Responses: openapi.OK("The status", stateChange), Errors: []int{400, 404, 503},
	},
}

var stateChange = object{"type": "object", "properties": object{
	"operation_id": object{"type": "string"}, "status": object{"type": "string"}, "reason": object{"type": "string"},
}}
