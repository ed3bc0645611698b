package flow

import (
	"net/http"
	"reflect"

	"platform/admin/openapi"
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

var componentNames = map[reflect.Type]string{
	reflect.TypeFor[ruleChange]():   "RuleChange",
	reflect.TypeFor[limitsView]():   "Limits",
	reflect.TypeFor[ruleView]():     "Rule",
	reflect.TypeFor[ruleBookView](): "RuleBook",
	reflect.TypeFor[vqueueView]():   "VQueue",
	reflect.TypeFor[counterView]():  "LimitCounter",
}

var operations = map[string]operation{
	"GET /limits/rules": {
		ID: "list_rules", Tag: "rule", Summary: "Show the rule book, sorted by pattern",
		Responses: openapi.OK("The rule book", ruleBookView{}),
	},
	"PUT /limits/rules": {
		ID: "upsert_rules", Tag: "rule", Summary: "Add or replace rules atomically",
		Body:      openapi.ArrayOf[ruleChange](),
		Responses: openapi.OK("The rules, in the order of the request", openapi.ArrayOf[ruleView]()),
		Errors:    []int{400, 409, 415, 422, 503},
	},
	"POST /limits/rules/bulk-delete": {
		ID: "delete_rules", Tag: "rule", Summary: "Delete rules atomically; rules that do not exist are ignored",
		Body:      openapi.ArrayOf[ruleRemoval](),
		Responses: openapi.OK("The patterns of the deleted rules", object{"type": "array", "items": object{"type": "string"}}),
		Errors:    []int{400, 409, 415, 422, 503},
	},
	"GET /limits/rules/:pattern": {
		ID: "get_rule", Tag: "rule", Summary: "Show a rule",
		Responses: openapi.OK("The rule", ruleView{}), Errors: []int{400, 404},
	},
	"PUT /limits/rules/:pattern": {
		ID: "upsert_rule", Tag: "rule", Summary: "Add or replace a rule", Body: ruleChange{},
		Responses: openapi.OK("The current rule", ruleView{}), Errors: []int{400, 409, 415, 422, 503},
	},
	"DELETE /limits/rules/:pattern": {
		ID: "delete_rule", Tag: "rule", Summary: "Delete a rule",
		Query:     []object{openapi.QueryParameter("expected_version", "Delete it only if it has this version.", object{"type": "integer", "minimum": 1})},
		Responses: openapi.OK("Deleted", nil), Errors: []int{400, 404, 409, 503},
	},
	"POST /limits/scopes/:scope/pause": {
		ID: "pause_scope", Tag: "rule", Summary: "Stop all vqueues of a scope, also future ones, from starting invocations; running ones continue", Query: []object{openapi.PauseReason},
		Responses: responses{openapi.Returns(http.StatusAccepted, "Accepted. A scope that is already paused keeps its pause", nil)}, Errors: []int{400, 503},
	},
	"POST /limits/scopes/:scope/resume": {
		ID: "resume_scope", Tag: "rule", Summary: "Resume a paused scope; vqueues that are paused themselves remain so",
		Responses: responses{openapi.Returns(http.StatusAccepted, "Accepted", nil)}, Errors: []int{400, 503},
	},
	"POST /vqueues/:vqueue_id/pause":  queueOperation("pause_vqueue", "Stop a vqueue from starting invocations; running ones continue", openapi.PauseReason),
	"POST /vqueues/:vqueue_id/resume": queueOperation("resume_vqueue", "Resume a paused vqueue"),
	"GET /vqueues": {
		ID: "list_vqueues", Tag: "vqueue", Summary: "List the vqueues, those with the most waiting invocations first, each with what blocks its head",
		Query: []object{
			openapi.QueryParameter("service", "Only those of this service.", object{"type": "string"}),
			openapi.QueryParameter("scope", "Only those of this scope.", object{"type": "string"}),
			openapi.QueryParameter("limit_key", "Only those of this limit key.", object{"type": "string"}),
			openapi.Limit("rows"), openapi.Cursor,
		},
		Responses: openapi.OK("One page", vqueuePage{}), Errors: []int{400, 429, 503},
	},
	"GET /vqueues/:vqueue_id": {
		ID: "get_vqueue", Tag: "vqueue", Summary: "Show a vqueue, or the queue of an object without a scope",
		Responses: openapi.OK("The vqueue", vqueueView{}), Errors: []int{400, 404, 429, 503},
	},
	"GET /limits/counters": {
		ID: "list_counters", Tag: "rule", Summary: "List the counters of limits that are in use, those with the most waiting invocations first",
		Query: []object{
			openapi.QueryParameter("scope", "Only those of this scope.", object{"type": "string"}),
			openapi.QueryParameter("rule", "Only those limited by the rule with this pattern.", object{"type": "string"}),
			openapi.Limit("rows"), openapi.Cursor,
		},
		Responses: openapi.OK("One page", counterPage{}), Errors: []int{400, 429, 503},
	},
}

func queueOperation(id, summary string, query ...object) operation {
	return operation{
		ID: id, Tag: "vqueue", Summary: summary, Query: query,
		Responses: responses{openapi.Returns(http.StatusAccepted, "Accepted. No effect if the queue has no entries", nil)}, Errors: []int{400, 503},
	}
}

var fieldSchemas = map[string]object{
	"Precondition.type":  {"type": "string", "enum": []string{"none", "matches", "does_not_exist"}},
	"Limits.concurrency": {"type": []string{"integer", "null"}, "minimum": 1},
	"Limits.rate":        {"type": []string{"string", "null"}, "examples": []string{"100/s", "30/m", "5/10s"}},
	"Limits.queue_limit": {"type": []string{"integer", "null"}, "minimum": 0},
}

var fieldMeanings = map[string]string{
	"RuleChange.pattern":           "scope, scope/l1 or scope/l1/l2; each part is exact, or * for any.",
	"RuleChange.disabled":          "Keep the rule without applying it.",
	"RuleChange.precondition":      "Condition on the current rule; if it does not hold, nothing is changed.",
	"RuleRemoval.expected_version": "Delete the rule only if it has this version. Without it, a missing rule is not an error.",
	"Rule.version":                 "Increases with every change of limits or disabled.",
	"RuleBook.version":             "Increases with every change that can affect an invocation.",
	"Precondition.version":         "Of the rule, for matches.",
}
