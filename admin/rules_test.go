package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
)

// withRules has rules at several levels.
func withRules(t *testing.T, change func(*Config)) *testServer {
	w := newTestServer(t, change)
	answer := w.ask(t, "PUT", "/limits/rules", `[
		{"pattern":"tenant","limits":{"concurrency":5,"rate":"60/minute","queue_limit":0},"description":"large <one>"},
		{"pattern":"*","limits":{"concurrency":1},"disabled":true,"precondition":{"type":"none"}},
		{"pattern":"tenant/*/x","limits":{"concurrency":null},"description":null,"precondition":{"type":"does_not_exist"}}]`)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	goldenJSON(t, "rules_put", text(t, answer))
	return w
}

func TestRulesAreShown(t *testing.T) {
	w := withRules(t, nil)
	for name, path := range map[string]string{
		"rules": "/limits/rules", "rule": "/v4/limits/rules/tenant", "rule_escaped": "/limits/rules/tenant%2F*%2Fx", "rule_any": "/limits/rules/%2A",
	} {
		answer := w.ask(t, "GET", path, "")
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		goldenJSON(t, name, text(t, answer))
	}
	require.JSONEq(t, `{"version":0,"rules":[]}`, text(t, newTestServer(t, nil).ask(t, "GET", "/limits/rules", "")))
}

func TestRulesAreChanged(t *testing.T) {
	w := withRules(t, nil)
	put := w.ask(t, "PUT", "/limits/rules/*", `{"limits":{"concurrency":7}}`)
	require.Equal(t, http.StatusOK, put.StatusCode)
	require.Regexp(t, `^{"pattern":"\*","limits":{"concurrency":7},"disabled":false,"version":2,"last_modified_millis_since_epoch":\d+}$`, text(t, put))

	// What is not given is reset.
	put = w.ask(t, "PUT", "/limits/rules/tenant", `{"pattern":"tenant"}`)
	require.Regexp(t, `^{"pattern":"tenant","limits":{},"disabled":false,"version":2,`, text(t, put))

	require.Equal(t, http.StatusOK, w.ask(t, "GET", "/limits/rules/tenant/*/x", "").StatusCode, "slashes need no escape")
	deleted := w.ask(t, "DELETE", "/limits/rules/tenant%2F*%2Fx?expected_version=1", "")
	require.Equal(t, http.StatusOK, deleted.StatusCode)
	require.Empty(t, text(t, deleted))
	bulk := w.ask(t, "POST", "/limits/rules/bulk-delete", `[{"pattern":"unknown"},{"pattern":"tenant","expected_version":2},{"pattern":"*"}]`)
	require.Equal(t, http.StatusOK, bulk.StatusCode)
	require.Equal(t, `["tenant","*"]`, text(t, bulk))
	require.Contains(t, text(t, w.ask(t, "GET", "/limits/rules", "")), `"rules":[]`)

	for _, request := range []string{"PUT /limits/rules", "POST /limits/rules/bulk-delete"} {
		method, path, _ := strings.Cut(request, " ")
		require.Equal(t, "[]", text(t, w.ask(t, method, path, `[]`)), "nothing asked for, nothing done")
	}
}

func TestARuleMayHaveTheNameOfARoute(t *testing.T) {
	w := newTestServer(t, nil)
	require.Equal(t, http.StatusOK, w.ask(t, "PUT", "/limits/rules/bulk-delete", `{}`).StatusCode)
	require.Equal(t, http.StatusOK, w.ask(t, "GET", "/limits/rules/bulk-delete", "").StatusCode)
	require.Equal(t, http.StatusOK, w.ask(t, "DELETE", "/limits/rules/bulk-delete", "").StatusCode)
}

func TestRulesThatAreRejected(t *testing.T) {
	w := withRules(t, nil)
	_, before := w.store.Rules()
	const list, one, bulk = "/limits/rules", "/limits/rules/tenant", "/limits/rules/bulk-delete"
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		message                  string
	}{
		{"no body", "PUT", list, "", 415, "expected the header 'content-type"},
		{"blank body", "PUT", list, " ", 400, "the request body is empty, expected a JSON array"},
		{"no JSON", "PUT", list, `[{"pattern":"a",}]`, 400, "not valid JSON: invalid character '}' looking for beginning of object key string at line 1, column 17"},
		{"no array", "PUT", list, `{"pattern":"a"}`, 422, "the request body must be an array, not an object"},
		{"null", "PUT", list, `null`, 422, "the request body must be an array, not null"},
		{"no objects", "PUT", list, `[{"pattern":"new"},3]`, 422, "element 2 of the array: it must be an object"},
		{"no pattern", "PUT", list, `[{}]`, 422, "element 1 of the array: the field 'pattern' is missing"},
		{"number for a pattern", "PUT", list, `[{"pattern":3}]`, 422, "the field 'pattern' must be a string, not a number"},
		{"bad pattern", "PUT", list, `[{"pattern":"new"},{"pattern":"a b"}]`, 422, "element 2 of the array: bad pattern 'a b'"},
		{"long pattern", "PUT", list, `[{"pattern":"` + strings.Repeat("a", 37) + `"}]`, 422, "has 37 bytes: at most 36 are allowed"},
		{"four parts", "PUT", list, `[{"pattern":"a/b/c/d"}]`, 422, "it has 4 parts"},
		{"misspelt limit", "PUT", list, `[{"pattern":"new","limits":{"concurency":3}}]`, 422, `element 1 of the array: unknown field 'limits.concurency'; did you mean 'concurrency'?`},
		{"limit of none", "PUT", list, `[{"pattern":"new","limits":{"concurrency":0}}]`, 422, "'limits.concurrency' must be 1 or more; leave it out"},
		{"negative limit", "PUT", list, `[{"pattern":"new","limits":{"concurrency":-1}}]`, 422, "the field 'limits.concurrency' must be an integer, not -1, which is out of range"},
		{"fractional limit", "PUT", list, `[{"pattern":"new","limits":{"concurrency":1.5}}]`, 422, "the field 'limits.concurrency' must be an integer"},
		{"huge limit", "PUT", list, `[{"pattern":"new","limits":{"concurrency":4294967296}}]`, 422, "the field 'limits.concurrency' must be an integer, not 4294967296, which is out of range"},
		{"limits as a number", "PUT", list, `[{"pattern":"new","limits":3}]`, 422, "the field 'limits' must be an object, not a number"},
		{"bad rate", "PUT", list, `[{"pattern":"new","limits":{"rate":"fast"}}]`, 422, "'limits.rate' is invalid: bad rate 'fast': a rate is a number and a period, such as 100/s"},
		{"rate as a number", "PUT", list, `[{"pattern":"new","limits":{"rate":3}}]`, 422, "the field 'limits.rate' must be a string"},
		{"negative queue", "PUT", list, `[{"pattern":"new","limits":{"queue_limit":-1}}]`, 422, "the field 'limits.queue_limit' must be an integer"},
		{"long description", "PUT", list, `[{"pattern":"new","description":"` + strings.Repeat("d", 1025) + `"}]`, 422, "description has 1025 bytes, at most 1024"},
		{"unknown precondition", "PUT", list, `[{"pattern":"new","precondition":{"type":"perhaps"}}]`, 422, `'precondition.type' is 'perhaps'; there are "none", "matches"`},
		{"empty precondition", "PUT", list, `[{"pattern":"new","precondition":{}}]`, 422, "'precondition.type' is ''"},
		{"matches nothing", "PUT", list, `[{"pattern":"new","precondition":{"type":"matches"}}]`, 422, "'precondition.version' is missing"},
		{"version of none", "PUT", list, `[{"pattern":"new","precondition":{"type":"none","version":1}}]`, 422, "goes with the type \"matches\" only"},
		{"another version", "PUT", list, `[{"pattern":"new"},{"pattern":"tenant","precondition":{"type":"matches","version":7}}]`, 409, "rule 'tenant' was expected at version 7, but it is at version 1"},
		{"exists", "PUT", list, `[{"pattern":"tenant","precondition":{"type":"does_not_exist"}}]`, 409, "rule 'tenant' was expected not to exist"},
		{"one, another pattern", "PUT", one, `{"pattern":"*"}`, 422, "the field 'pattern' is '*', but the path is that of 'tenant'"},
		{"one, array", "PUT", one, `[]`, 422, "it must be an object"},
		{"one, another version", "PUT", one, `{"precondition":{"type":"matches","version":2}}`, 409, "expected at version 2"},
		{"one, bad path", "PUT", "/limits/rules/a%20b", `{}`, 400, "The request field 'pattern' is invalid. Reason: bad pattern 'a b'"},
		{"bad path", "GET", "/limits/rules/a%2F%2Fb", "", 400, "a part is empty"},
		{"unknown", "GET", "/limits/rules/unknown", "", 404, "The requested rule 'unknown' does not exist"},
		{"delete unknown", "DELETE", "/limits/rules/unknown", "", 404, "The requested rule 'unknown' does not exist"},
		{"delete bad path", "DELETE", "/limits/rules/a%20b", "", 400, "'pattern' is invalid"},
		{"delete another version", "DELETE", one + "?expected_version=2", "", 409, "expected at version 2, but it is at version 1"},
		{"delete odd version", "DELETE", one + "?expected_version=x", "", 400, `'expected_version' is invalid: "x" is not the version of a rule`},
		{"bulk, object", "POST", bulk, `{"pattern":"a"}`, 422, "must be an array"},
		{"bulk, bad pattern", "POST", bulk, `[{"pattern":"a"},{"pattern":"/"}]`, 422, "element 2 of the array: bad pattern '/'"},
		{"bulk, unknown field", "POST", bulk, `[{"pattern":"a","version":1}]`, 422, `unknown field 'version'; did you mean 'expected_version'?`},
		{"bulk, absent but expected", "POST", bulk, `[{"pattern":"*"},{"pattern":"a","expected_version":1}]`, 409, "rule 'a' was expected at version 1, but there is no such rule"},
		{"bulk, another version", "POST", bulk, `[{"pattern":"*","expected_version":9}]`, 409, "it is at version 1"},
		{"wrong method", "PATCH", list, "", 405, "the method PATCH is not allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := w.ask(t, tc.method, tc.path, tc.body)
			body := text(t, answer)
			require.Equal(t, tc.status, answer.StatusCode, body)
			requireError(t, answer, body, "", tc.message)
		})
	}
	select {
	case <-before:
		t.Fatal("a refused request changed the rule book")
	default:
	}
}

func TestAFullRuleBookIsRejected(t *testing.T) {
	w := newTestServer(t, nil)
	var list strings.Builder
	for i := range flowcontrol.MaxRules {
		fmt.Fprintf(&list, `,{"pattern":"s%d"}`, i)
	}
	require.Equal(t, http.StatusOK, w.ask(t, "PUT", "/limits/rules", "["+list.String()[1:]+"]").StatusCode)
	answer := w.ask(t, "PUT", "/limits/rules/more", `{}`)
	body := text(t, answer)
	require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode)
	requireError(t, answer, body, "", "would hold 10001 rules, and at most 10000 are allowed")
}

func TestChangesOfRulesWaitForPartitions(t *testing.T) {
	var awaited []uint32
	w := withRules(t, func(c *Config) {
		c.AwaitRules = func(ctx context.Context, version uint32) {
			_, bounded := ctx.Deadline()
			require.True(t, bounded)
			awaited = append(awaited, version)
		}
	})
	w.ask(t, "PUT", "/limits/rules/tenant", `{}`)
	w.ask(t, "DELETE", "/limits/rules/tenant", "")
	w.ask(t, "POST", "/limits/rules/bulk-delete", `[{"pattern":"*"}]`)
	require.Equal(t, []uint32{1, 2, 3, 4}, awaited)
	w.ask(t, "GET", "/limits/rules", "")
	w.ask(t, "DELETE", "/limits/rules/tenant", "")
	require.Len(t, awaited, 4, "nothing changed")
}

func TestRulesInTheDescription(t *testing.T) {
	w := withRules(t, nil)
	schemas := askDocument(t, w, "/openapi")["components"].(object)["schemas"].(object)
	for path, name := range map[string]string{"/limits/rules": "RuleBook", "/limits/rules/tenant": "Rule"} {
		var answered object
		require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", path, ""))), &answered))
		for field := range answered {
			require.Contains(t, schemas[name].(object)["properties"], field)
		}
	}
}
