package admin

import (
	"net/http"
	"reflect"
)

var ruleOperations = map[string]operation{
	"GET /limits/rules": {
		id: "list_rules", tag: "rule", summary: "Show the rule book, sorted by pattern",
		answers: []reply{{http.StatusOK, "The rule book", ruleBookView{}}},
	},
	"PUT /limits/rules": {
		id: "upsert_rules", tag: "rule", summary: "Add or replace rules atomically",
		body:     arrayOf[ruleChange](),
		answers:  []reply{{http.StatusOK, "The rules, in the order of the request", arrayOf[ruleView]()}},
		refusals: []int{400, 409, 415, 422, 503},
	},
	"POST /limits/rules/bulk-delete": {
		id: "delete_rules", tag: "rule", summary: "Delete rules atomically; rules that do not exist are ignored",
		body:     arrayOf[ruleRemoval](),
		answers:  []reply{{http.StatusOK, "The patterns of the deleted rules", object{"type": "array", "items": object{"type": "string"}}}},
		refusals: []int{400, 409, 415, 422, 503},
	},
	"GET /limits/rules/:pattern": {
		id: "get_rule", tag: "rule", summary: "Show a rule",
		answers: []reply{{http.StatusOK, "The rule", ruleView{}}}, refusals: []int{400, 404},
	},
	"PUT /limits/rules/:pattern": {
		id: "upsert_rule", tag: "rule", summary: "Add or replace a rule", body: ruleChange{},
		answers: []reply{{http.StatusOK, "The current rule", ruleView{}}}, refusals: []int{400, 409, 415, 422, 503},
	},
	"DELETE /limits/rules/:pattern": {
		id: "delete_rule", tag: "rule", summary: "Delete a rule",
		query:   []object{queryParameter("expected_version", "Delete it only if it has this version.", object{"type": "integer", "minimum": 1})},
		answers: []reply{{http.StatusOK, "Deleted", nil}}, refusals: []int{400, 404, 409, 503},
	},
}

// arrayOf returns the schema of [element…].
func arrayOf[T any]() object { return object{"type": "array", "items": reflect.TypeFor[T]()} }
