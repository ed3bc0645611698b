package admin

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/subscription"
)

// Each parameter of each path and query for subscriptions and Kafka clusters in the OpenAPI document
// rejects wrong values, and names of parameters that do not exist, with an error that names it.
func TestEachParameterOfEventsRejectsWrongValues(t *testing.T) {
	w, streams := streaming(t)
	streams.recordErr = subscription.ErrNotBlocked
	id := w.subscribe(t, simpleSubscription)["id"].(string)
	valid := map[string]string{"subscription": id, "topic": "orders", "topic_partition": "0", "offset": "0", "kafka_cluster": "main"}
	long := strings.Repeat("x", 4000)
	wrongInPath := map[string][]string{
		"subscription":    {"sub_1", "x", "inv_1abc", " ", "sub_" + long, "\x00", "\xff", id + "x", strings.ToUpper(id)},
		"topic":           {"other", " ", "\x00", "\xff", long},
		"topic_partition": {"x", "-1", "1.5", "2147483648", "99999999999999999999", " 0", "0x1", "\x00", "１"},
		"offset":          {"x", "-1", "1.5", "9223372036854775808", "99999999999999999999", "+1 ", "0x1", "\x00"},
		"kafka_cluster":   {"none", " ", "\x00", "\xff", long, "a/b"},
	}
	wrongByType := map[string][]string{
		"boolean": {"maybe", "2", "yes", "TRUE ", "\x00", long, "[]"},
		"integer": {"x", "0", "-1", "1.5", "1e3", "1001", "99999999999999999999", " ", long},
		"string":  {},
	}
	wrongByName := map[string][]string{
		"after":  {"x", "orders/0", "orders/0/x", "orders/x/0", "orders/-1/0", "orders/0/-1", "/0/0", long, "orders/0/9223372036854775808", "\x00"},
		"reason": {strings.Repeat("x", 513), "\x00", "a\nb"},
	}
	send := func(method, path string, names ...string) {
		t.Helper()
		answer := w.ask(t, method, path, map[bool]string{true: `{"start":"latest"}`}[strings.Contains(path, "/seek")])
		body := text(t, answer)
		what := method + " " + path[:min(len(path), 200)]
		require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, answer.StatusCode, "%s: %.300s", what, body)
		require.Less(t, len(body), 2000, what)
		for _, name := range names {
			require.Contains(t, body, name, what)
		}
	}
	before, _ := w.store.Subscriptions()
	paths, parameters := askDocument(t, w, "/openapi")["paths"].(map[string]any), 0
	for path, methods := range paths {
		if !strings.HasPrefix(path, "/subscriptions") && !strings.HasPrefix(path, "/kafka-clusters") {
			continue
		}
		fill := func(except, value string) string {
			filled := path
			for name, v := range valid {
				if name == except {
					v = value
				}
				filled = strings.ReplaceAll(filled, "{"+name+"}", url.PathEscape(v))
			}
			return filled
		}
		for method, described := range methods.(map[string]any) {
			method = strings.ToUpper(method)
			if method == "PATCH" || method == "POST" && (path == "/subscriptions" || path == "/kafka-clusters") {
				continue // their bodies have a test of their own
			}
			list, _ := described.(map[string]any)["parameters"].([]any)
			for _, parameter := range list {
				p := parameter.(map[string]any)
				name := p["name"].(string)
				parameters++
				if p["in"] == "path" {
					require.NotEmpty(t, wrongInPath[name], "wrong values of %s", name)
					for _, value := range wrongInPath[name] {
						send(method, fill(name, value))
					}
					continue
				}
				wrong, known := wrongByType[p["schema"].(map[string]any)["type"].(string)]
				require.True(t, known, "wrong values of %s", name)
				for _, value := range append(wrong, wrongByName[name]...) {
					send(method, fill("", "")+"?"+name+"="+url.QueryEscape(value), name)
				}
			}
			send(method, fill("", "")+"?nonsense=1", "nonsense")
		}
	}
	require.Greater(t, parameters, 30)
	after, _ := w.store.Subscriptions()
	require.Equal(t, before, after)
	require.Len(t, w.store.KafkaClusters(), 1)
}
