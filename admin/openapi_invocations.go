package admin

import (
	"net/http"
	"slices"

	"platform/admin/explain"
	"platform/admin/rest"
)

var invocationOperations = map[string]operation{
	"GET /invocations": {
		id: "list_invocations", tag: "invocation", summary: "List the invocations that match all filters",
		query: slices.Concat(filterParameters, []object{
			queryParameter("sort", "Sort by creation or by the last change of status.", object{"type": "string", "enum": orders, "default": orders[0]}),
			queryParameter("oldest_first", "List the oldest first. By default the newest come first.", object{"type": "boolean", "default": false}),
			queryParameter("limit", "Maximum number of invocations in a page.", object{"type": "integer", "minimum": 1, "maximum": maxLimit, "default": defaultLimit}),
			queryParameter("cursor", "next_cursor of the page before.", object{"type": "string"}),
			partialParameter,
		}),
		answers: []reply{{http.StatusOK, "One page", Page{}}}, refusals: []int{400, 503},
	},
	"GET /invocations/counts": {
		id: "count_invocations", tag: "invocation", summary: "Count the invocations that match all filters, by status, result and handler",
		query:   slices.Concat(filterParameters, []object{partialParameter}),
		answers: []reply{{http.StatusOK, "The numbers", Counts{}}}, refusals: []int{400, 503},
	},
	"GET /failures": {
		id: "list_failures", tag: "failure", summary: "List failed invocations in groups of the same cause, the latest failure first; and the topic partitions of event subscriptions whose next record cannot be delivered",
		query: slices.Concat(filterParameters, []object{
			queryParameter("limit", "Maximum number of groups in a page.", object{"type": "integer", "minimum": 1, "maximum": maxLimit, "default": defaultLimit}),
			queryParameter("cursor", "next_cursor of the page before.", object{"type": "string"}),
			queryParameter("muted", "Only groups that are muted, or only those that are not.", object{"type": "boolean"}),
			partialParameter,
		}),
		answers: []reply{{http.StatusOK, "One page", failurePage{}}}, refusals: []int{400, 503},
	},
	"GET /failures/:group": {
		id: "get_failure", tag: "failure", summary: "Show a failure group",
		answers: []reply{{http.StatusOK, "The group", FailureGroup{}}}, refusals: []int{400, 404, 503},
	},
	"GET /objects": {
		id: "list_objects", tag: "object", summary: "List the keys of a virtual object or workflow that have state or are held, in their order, with the size of the state",
		query: []object{
			{"name": "service", "in": "query", "required": true, "description": "Name of a virtual object or workflow.", "schema": object{"type": "string"}},
			queryParameter("scope", "Scope of the keys; without it, those without a scope.", object{"type": "string"}),
			queryParameter("prefix", "Beginning of the keys.", object{"type": "string"}),
			queryParameter("limit", "Maximum number of keys in a page.", object{"type": "integer", "minimum": 1, "maximum": maxLimit, "default": defaultLimit}),
			queryParameter("cursor", "next_cursor of the page before.", object{"type": "string"}),
		},
		answers: []reply{{http.StatusOK, "One page", objectPage{}}}, refusals: []int{400, 404, 503},
	},
	"GET /services/:service/scopes": {
		id: "list_scopes", tag: "object", summary: "List the scopes in which a virtual object or workflow has keys",
		answers: []reply{{http.StatusOK, "The scopes", scopeList{}}}, refusals: []int{400, 404, 503},
	},
	"GET /objects/:service/:key": {
		id: "get_object", tag: "object", summary: "Show a key of a virtual object or workflow: the size of its state, its holder, the invocations that wait for it, promises",
		query:   []object{queryParameter("scope", "Scope of the key.", object{"type": "string"})},
		answers: []reply{{http.StatusOK, "The key", ObjectDetail{}}}, refusals: []int{400, 404, 503},
	},
	"PATCH /failures/:group": {
		id: "mark_failure", tag: "failure", summary: "Mute or unmute a failure group, or change its note. Needs feature level 4",
		body:    failureMarkRequest{},
		answers: []reply{{http.StatusOK, "The group", FailureGroup{}}}, refusals: []int{400, 404, 409, 422, 503},
	},
	"GET /invocations/:invocation_id": {
		id: "get_invocation", tag: "invocation", summary: "Show an invocation",
		query:   []object{queryParameter("journal", "Include its journal.", object{"type": "boolean", "default": false})},
		answers: []reply{{http.StatusOK, "The invocation", Invocation{}}}, refusals: []int{400, 404, 503},
	},
	"GET /invocations/:invocation_id/explain": {
		id: "explain_invocation", tag: "invocation", summary: "Explain why an invocation is in its status, what it waits for, and what to do next",
		answers: []reply{{http.StatusOK, "The explanation", explain.Explanation{}}}, refusals: []int{400, 404, 429, 503},
	},
	"DELETE /invocations/:invocation_id": {
		id: "end_invocation", tag: "invocation", summary: "Cancel, kill or purge an invocation (deprecated)",
		query:   []object{queryParameter("mode", "The operation.", object{"type": "string", "enum": []string{"Cancel", "Kill", "Purge"}, "default": "Cancel"})},
		answers: []reply{{http.StatusAccepted, "Accepted", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/cancel": {
		id: "cancel_invocation", tag: "invocation", summary: "Request the cancellation of an invocation and of the calls it waits for; its handler can clean up",
		answers: []reply{{http.StatusAccepted, "Requested; the handler decides how the invocation ends", nil}, {http.StatusOK, "The invocation had not started and has ended", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/kill": {
		id: "kill_invocation", tag: "invocation", summary: "End an invocation and the calls it waits for immediately, without cleanup by the handler",
		answers: []reply{{http.StatusOK, "The invocation has ended", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/pause": {
		id: "pause_invocation", tag: "invocation", summary: "Stop an invocation until it is resumed", query: []object{reasonParameter},
		answers: []reply{{http.StatusAccepted, "The pause was requested", nil}, {http.StatusOK, "The invocation was already paused", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/resume": {
		id: "resume_invocation", tag: "invocation", summary: "Resume an invocation, or retry it immediately", query: deploymentParameters("The default is Keep."),
		answers: []reply{{http.StatusOK, "The invocation was resumed", nil}}, refusals: []int{400, 404, 409, 425, 503},
	},
	"PATCH /invocations/:invocation_id/purge": {
		id: "purge_invocation", tag: "invocation", summary: "Delete a completed invocation: its result, journal, idempotency key and workflow state",
		answers: []reply{{http.StatusOK, "The invocation was deleted", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/purge-journal": {
		id: "purge_journal", tag: "invocation", summary: "Delete the journal of a completed invocation",
		answers: []reply{{http.StatusOK, "The journal was deleted", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"PATCH /invocations/:invocation_id/restart-as-new": {
		id: "restart_as_new_invocation", tag: "invocation", summary: "Create a new invocation from a completed one",
		query: append(deploymentParameters("The default is Latest."),
			queryParameter("from", "Index of the last journal entry to copy; completions of the copied commands are included. 0: the input only.",
				object{"type": "integer", "format": "int32", "minimum": 0, "default": 0})),
		answers: []reply{{http.StatusOK, "The new invocation", object{
			"type": "object", "required": []string{"new_invocation_id"}, "properties": object{"new_invocation_id": object{"type": "string"}},
		}}},
		refusals: []int{400, 404, 409, 410, 422, 425, 503},
	},
	"POST /invocations/:invocation_id/copy": {
		id: "copy_invocation", tag: "invocation", summary: "Start a new invocation of the same handler, key and scope, with the same headers and an edited input. Not for workflows",
		body:     copyRequest{},
		answers:  []reply{{http.StatusOK, "The new invocation", restarted{}}},
		refusals: []int{400, 404, 410, 422, 429, 503},
	},
	"POST /internal/services/:service/serdes/:operation/:serde": {
		id: "convert_payload", tag: "service", summary: "Convert a payload between JSON and the format of a serializer of the service, by its endpoint: encode from JSON, decode to JSON. Slashes in the name of the serializer are written as %2F",
		query:    []object{queryParameter("deployment", "The deployment that converts; by default that of the service.", object{"type": "string"})},
		answers:  []reply{{http.StatusOK, "The converted payload, with the content type that the endpoint gave it", nil}},
		refusals: []int{400, 404, 413, 502, 503},
	},
	"POST /internal/invocations_batch_operations/:operation": {
		id: "batch_operation", tag: "invocation", summary: "Apply an operation to up to 1000 invocations: cancel, kill, pause, resume, purge, purge-journal or restart-as-new",
		body: object{"type": "object", "required": []string{"invocation_ids"}, "properties": object{
			"invocation_ids": object{"type": "array", "items": object{"type": "string"}, "maxItems": 1000},
			"deployment":     object{"type": "string", "description": "Keep, Latest or the id of a deployment; for resume and restart-as-new"},
			"reason":         object{"type": "string", "description": "For pause: why, for other operators; one line of up to 512 bytes", "maxLength": rest.MaxReason},
		}},
		answers: []reply{{http.StatusOK, "The outcome for each invocation", object{"type": "object", "required": []string{"succeeded", "failed"}, "properties": object{
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
		}}}},
		refusals: []int{400, 404, 415, 422},
	},
}

// textList is the schema of parameters that can be repeated.
var textList = object{"type": "array", "items": object{"type": "string"}}

// deploymentParameters describes the parameters that select a deployment; fallback describes the
// default.
func deploymentParameters(fallback string) []object {
	return []object{
		queryParameter("deployment", "Keep, Latest or the id of a deployment. "+fallback, object{"type": "string"}),
		queryParameter("Id", "Id of a deployment, as deployment={id}.", object{"type": "string"}),
	}
}

var stateOperations = map[string]operation{
	"GET /services/:service/state": {
		id: "get_state", tag: "service", summary: "Show the state of an object or workflow",
		query: []object{
			queryParameter("object_key", "Key of the object or workflow.", object{"type": "string"}),
			queryParameter("scope", "Scope of a scoped object.", object{"type": "string"}),
		},
		answers: []reply{{http.StatusOK, "The state", object{"type": "object", "properties": object{
			"version": object{"type": "string", "description": "Version of the state, for conditional changes"},
			"state": object{"type": "array", "items": object{"type": "object", "properties": object{
				"key": object{"type": "string"}, "value_utf8": object{"type": "string"}, "value": object{"type": "string", "contentEncoding": "base64"},
			}}},
		}}}},
		refusals: []int{400, 404, 503},
	},
	"POST /services/:service/state": {
		id: "modify_state", tag: "service", summary: "Replace the state of an object or workflow, once its key is free",
		query: []object{queryParameter("wait", "Respond once the change is made.", object{"type": "boolean", "default": false})},
		body: object{"type": "object", "required": []string{"object_key", "new_state"}, "properties": object{
			"object_key": object{"type": "string"},
			"new_state": object{"type": "object", "description": "The complete new state.", "additionalProperties": object{"oneOf": []object{
				{"type": "string"}, {"type": "array", "items": object{"type": "integer", "minimum": 0, "maximum": 255}},
			}}},
			"version": object{"type": "string", "description": "Change the state only if it has this version."},
			"scope":   object{"type": "string", "description": "Scope of a scoped object."},
		}},
		answers:  []reply{{http.StatusAccepted, "Made or queued; the operation id identifies the change", stateChange}},
		refusals: []int{400, 404, 409, 415, 422, 503},
	},
	"GET /state-updates/:operation": {
		id: "get_state_update", tag: "service", summary: "Show the status of a state change",
		answers: []reply{{http.StatusOK, "The status", stateChange}}, refusals: []int{400, 404, 503},
	},
}

var stateChange = object{"type": "object", "properties": object{
	"operation_id": object{"type": "string"}, "status": object{"type": "string"}, "reason": object{"type": "string"},
}}
