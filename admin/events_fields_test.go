package admin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"platform/admin/subscriptions"

	"github.com/stretchr/testify/require"
)

// wrongValues are JSON values that no field of a type accepts: other types, and values that are too
// large, too many or out of range.
func wrongValues(t *testing.T, field reflect.StructField) []string {
	for field.Type.Kind() == reflect.Pointer {
		field.Type = field.Type.Elem()
	}
	long := `"` + strings.Repeat("x", 70_000) + `"`
	many := func(format string) string {
		var items []string
		for i := range 201 {
			items = append(items, fmt.Sprintf(format, i))
		}
		return strings.Join(items, ",")
	}
	wrong := []string{"true"}
	switch field.Type.String() {
	case "string":
		return append(wrong, "5", "[]", "{}", `["x"]`, long, `"a\u0000"`, `"\u0007"`)
	case "uint32":
		return append(wrong, `"5"`, "[]", "{}", "-1", "1.5", "0", "10001", "4294967296", "1e9")
	case "[]string":
		return append(wrong, "5", `"x"`, "{}", "[5]", "[[]]", `["a b"]`, `[`+long+`]`, "["+many(`"h%d"`)+"]")
	case "map[string]string":
		return append(wrong, "5", `"x"`, "[]", `["x"]`, `{"client.id":5}`, `{"client.id":{}}`, `{"client.id":`+long+`}`, `{"client.id":"\u0000"}`, "{"+many(`"p%d":"x"`)+"}", `{"":"x"}`)
	case "json.RawMessage": // start and start.timestamp
		return append(wrong, "[]", `["x"]`, `"x"`, "-1", "1e30", long, `{"none":1}`)
	case "map[string]json.RawMessage": // start.offsets
		return append(wrong, "5", `"x"`, "[]", "{}", `{"x":5}`, `{"0":-1}`, `{"0":"5"}`, `{"0":1.5}`, `{"0":9223372036854775808}`, `{"-1":0}`, `{"2147483648":0}`, `{"orders":{"x":0}}`, `{"orders":5}`, `{"orders":{}}`, `{"other":{"0":0}}`)
	}
	t.Fatalf("no wrong values for the type %s of %s", field.Type, field.Name)
	return nil
}

// Each field of the bodies for subscriptions and Kafka clusters rejects values of other types and
// sizes with an error that names it, and nothing changes.
func TestEachFieldOfEventsRejectsWrongValues(t *testing.T) {
	w, _ := streaming(t)
	id := w.subscribe(t, simpleSubscription)["id"].(string)
	w.view(t, "POST", "/subscriptions/"+id+"/pause", "", 200)
	stored := func() string {
		subs, _ := w.store.Subscriptions()
		text, err := json.Marshal([]any{subs, w.store.KafkaClusters()})
		require.NoError(t, err)
		return string(text)
	}
	before := stored()
	bodyOf := func(route string) reflect.Type { return reflect.TypeOf(descriptions.Operations[route].Body) }
	names := func(field string) []string { // of which an error names one
		switch field {
		case "topics", "topic_pattern":
			return []string{field, "source"}
		case "options", "properties":
			return []string{field, "client.id", "p0", "properties", "property"}
		case "from", "timestamp", "offsets", "otherwise":
			return []string{field, "start"}
		}
		return []string{field}
	}
	var problems []string
	for _, request := range []struct {
		method, path string
		body         reflect.Type
		with         string // of a valid request
		nest         string // of the field, with a verb for it
	}{
		{"POST", "/subscriptions", bodyOf("POST /subscriptions"), `"source":"kafka://main/orders","sink":"service://Counter/add"`, "%s"},
		{"POST", "/subscriptions", reflect.TypeFor[subscriptions.StartObject](), `"source":"kafka://main/orders","sink":"service://Counter/add"`, `"start":{%s}`},
		{"PATCH", "/subscriptions/" + id, bodyOf("PATCH /subscriptions/:subscription"), "", "%s"},
		{"POST", "/subscriptions/" + id + "/seek", bodyOf("POST /subscriptions/:subscription/seek"), "", "%s"},
		{"POST", "/subscriptions/" + id + "/seek", reflect.TypeFor[subscriptions.StartObject](), "", `"start":{%s}`},
		{"POST", "/kafka-clusters", bodyOf("POST /kafka-clusters"), `"name":"new","properties":{"bootstrap.servers":"a:1"}`, "%s"},
		{"PATCH", "/kafka-clusters/main", bodyOf("PATCH /kafka-clusters/:kafka_cluster"), "", "%s"},
	} {
		for field := range request.body.Fields() {
			name := field.Tag.Get("json")
			send := func(value string) {
				part := fmt.Sprintf(request.nest, fmt.Sprintf("%q:%s", name, value))
				if request.with != "" {
					part = request.with + "," + part // the last of two values counts
				}
				answer := w.ask(t, request.method, request.path, "{"+part+"}")
				got := text(t, answer)
				what := fmt.Sprintf("%s %s %s = %.60s: %s", request.method, request.path, name, value, got)
				var parsed struct{ Message, Field string }
				named := json.Unmarshal([]byte(got), &parsed) == nil && slices.ContainsFunc(names(name), func(n string) bool {
					return strings.Contains(parsed.Message, n) || parsed.Field == n
				})
				if !slices.Contains([]int{400, 409, 422}, answer.StatusCode) || !named || len(got) > 4000 {
					problems = append(problems, fmt.Sprintf("%d %.600s", answer.StatusCode, what))
				}
			}
			for _, value := range wrongValues(t, field) {
				send(value)
			}
		}
		unknown := fmt.Sprintf(request.nest, `"nonsense":1`)
		if request.with != "" {
			unknown = request.with + "," + unknown
		}
		_, got := w.view(t, request.method, request.path, "{"+unknown+"}", 422)
		require.Contains(t, got, "nonsense")
	}
	require.Empty(t, problems)
	require.Equal(t, before, stored(), "nothing was created or changed")
}
