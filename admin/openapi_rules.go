package admin

import "platform/admin/openapi"

var ruleOperations = map[string]operation{
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
}
