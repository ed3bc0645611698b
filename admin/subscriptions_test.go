package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/subscriptions"
	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/subscription"
	"platform/metadata"
)

// fakeStreams is what the test says about brokers and nodes.
type fakeStreams struct {
	starts    []subscription.TopicStart
	unreached error
	statuses  subscriptions.Statuses
	record    subscription.Record
	recordErr error
	changed   []string
	letters   []subscription.DeadLetter
}

func (f *fakeStreams) Statuses(context.Context, string, bool) subscriptions.Statuses {
	return f.statuses
}
func (f *fakeStreams) ResolveStart(context.Context, *subscription.Subscription, *subscription.Cluster) ([]subscription.TopicStart, error) {
	return f.starts, f.unreached
}
func (f *fakeStreams) Record(context.Context, subscription.RecordID) (subscription.Record, error) {
	return f.record, f.recordErr
}
func (f *fakeStreams) RetryRecord(context.Context, subscription.RecordID) error {
	f.changed = append(f.changed, "retry")
	return f.recordErr
}
func (f *fakeStreams) DeadLetters(_ context.Context, _ string, after *subscription.RecordID, limit int) ([]subscription.DeadLetter, []string) {
	letters := f.letters
	for after != nil && len(letters) > 0 && letters[0].Offset <= after.Offset {
		letters = letters[1:]
	}
	return slices.Clone(letters[:min(limit, len(letters))]), []string{"n3: no route"}
}

func (f *fakeStreams) letter(id subscription.RecordID) int {
	return slices.IndexFunc(f.letters, func(l subscription.DeadLetter) bool { return l.Offset == id.Offset })
}

func (f *fakeStreams) DeadLetter(_ context.Context, id subscription.RecordID) (subscription.DeadLetter, error) {
	if i := f.letter(id); i >= 0 {
		return f.letters[i], nil
	}
	return subscription.DeadLetter{}, subscription.ErrNoDeadLetter
}

func (f *fakeStreams) RetryDeadLetter(ctx context.Context, id subscription.RecordID) error {
	if id.Offset == 7 {
		return fmt.Errorf("%w: key_missing: no key", subscription.ErrUndeliverable)
	}
	return f.DropDeadLetter(ctx, id)
}

func (f *fakeStreams) DropDeadLetter(_ context.Context, id subscription.RecordID) error {
	i := f.letter(id)
	if i < 0 {
		return subscription.ErrNoDeadLetter
	}
	f.letters = slices.Delete(f.letters, i, i+1)
	return nil
}

func (f *fakeStreams) SkipRecord(context.Context, subscription.RecordID) error {
	f.changed = append(f.changed, "skip")
	return f.recordErr
}

// streaming is a server with a cluster of the configuration, one that was added, and the
// services of seeded.
func streaming(t *testing.T, changes ...func(*Config)) (*testServer, *fakeStreams) {
	streams := &fakeStreams{starts: []subscription.TopicStart{{TopicOffsets: subscription.TopicOffsets{Topic: "orders", Offsets: []subscription.PartitionOffset{{Partition: 0, Offset: 7}}}}}}
	w := seeded(t, func(c *Config) {
		c.Streams = streams
		c.KafkaClusters = []subscription.Cluster{{Name: "fixed", Static: true, Properties: map[string]string{"bootstrap.servers": "127.0.0.1:1"}}}
		c.now = func() time.Time { return time.UnixMilli(1_700_000_100_000) }
		c.FlowControl = true
		for _, change := range changes {
			change(c)
		}
	})
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 8, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	for _, name := range []string{"ssl.ca.location", "ssl.key.location", "ssl.certificate.location", "https.ca.location"} {
		rejected, _ := w.view(t, "POST", "/kafka-clusters", `{"name":"files","properties":{"bootstrap.servers":"127.0.0.1:2","`+name+`":"/etc/shadow"}}`, 422)
		require.Contains(t, rejected["message"], strings.TrimSuffix(name, ".location")+".pem", "requests cannot choose which files the server reads")
	}
	answer := w.ask(t, "POST", "/kafka-clusters", `{"name":"main","properties":{"metadata.broker.list":"127.0.0.1:2","security.protocol":"sasl_plaintext","sasl.mechanism":"PLAIN","sasl.username":"u","sasl.password":"geheim","statistics.interval.ms":"5"}}`)
	require.Equal(t, http.StatusCreated, answer.StatusCode)
	require.Equal(t, "kafka-clusters/main", answer.Header.Get("Location"))
	body := text(t, answer)
	require.Contains(t, body, `"sasl.password":"***"`)
	require.Contains(t, body, "statistics.interval.ms has no effect")
	require.NotContains(t, body, "geheim")
	return w, streams
}

// subscribe creates a subscription and returns its view.
func (w *testServer) subscribe(t *testing.T, body string) map[string]any {
	t.Helper()
	answer := w.ask(t, "POST", "/subscriptions", body)
	got := text(t, answer)
	require.Equal(t, http.StatusCreated, answer.StatusCode, got)
	view := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(got), &view))
	require.Equal(t, "subscriptions/"+view["id"].(string), answer.Header.Get("Location"))
	return view
}

const simpleSubscription = `{"source":"kafka://main/orders","sink":"service://Counter/add"}`

func (w *testServer) view(t *testing.T, method, path, body string, status int) (map[string]any, string) {
	t.Helper()
	answer := w.ask(t, method, path, body)
	got := text(t, answer)
	require.Equal(t, status, answer.StatusCode, got)
	view := map[string]any{}
	if got != "" {
		require.NoError(t, json.Unmarshal([]byte(got), &view))
	}
	return view, got
}

func TestSubscriptionLives(t *testing.T) {
	w, streams := streaming(t)
	view := w.subscribe(t, simpleSubscription)
	id := view["id"].(string)
	require.Equal(t, "starting", view["state"])
	require.Equal(t, map[string]any{"group.id": id, "client.id": "platform"}, view["options"])
	require.Equal(t, map[string]any{"from": "latest", "resolved": true}, view["start"])
	require.Equal(t, []any{"*"}, view["headers"])

	streams.statuses.ByID = map[string][]subscription.Status{id: {{
		Subscription: id, Incarnation: 1, State: subscription.Running,
		Partitions: []subscription.PartitionStatus{
			{Topic: "orders", State: subscription.Running, Node: 1, Position: 9, End: 12, LagSeconds: 1.5, Delivered: 2},
			{Topic: "orders", Partition: 1, State: subscription.Blocked, Reason: subscription.KeyMissing, Position: 4, End: 5,
				Blocked: &subscription.BlockedRecord{Offset: 4, Reason: subscription.KeyMissing, ValueSize: 3}},
		},
	}}}
	streams.statuses.Silent = []string{"n2: it does not respond"}
	view, got := w.view(t, "GET", "/subscriptions/"+id, "", 200)
	require.Equal(t, "blocked", view["state"])
	require.Equal(t, "key_missing", view["reason"])
	require.EqualValues(t, 4, view["lag_records"])
	require.EqualValues(t, 1.5, view["lag_seconds"])
	require.EqualValues(t, 1, view["blocked"])
	partitions := view["partitions"].([]any)
	require.Len(t, partitions, 2)
	require.EqualValues(t, 1.5, partitions[0].(map[string]any)["lag_seconds"])
	require.NotContains(t, partitions[1], "lag_seconds", "its record is not fetched")
	require.Contains(t, got, `"start_offset":7`)
	require.Contains(t, got, "n2: it does not respond")
	list, got := w.view(t, "GET", "/subscriptions?source=kafka://main/orders&sink=service://Counter/add", "", 200)
	require.Len(t, list["subscriptions"], 1)
	require.NotContains(t, got, `"partitions"`)
	list, _ = w.view(t, "GET", "/subscriptions?sink=service://Counter/other", "", 200)
	require.Empty(t, list["subscriptions"])

	view, _ = w.view(t, "PATCH", "/subscriptions/"+id, `{"on_error":"skip"}`, 200)
	require.Equal(t, "starting", view["state"], "the record blocked it before the edit")

	// Seeking needs a pause.
	_, got = w.view(t, "POST", "/subscriptions/"+id+"/seek", `{"start":"earliest"}`, 409)
	require.Contains(t, got, "not paused")
	view, _ = w.view(t, "POST", "/subscriptions/"+id+"/pause?reason=a+deploy", "", 200)
	require.Equal(t, "paused", view["state"])
	require.Equal(t, "a deploy", view["paused"].(map[string]any)["reason"])
	view, _ = w.view(t, "POST", "/subscriptions/"+id+"/seek", `{"start":{"timestamp":"2026-01-01T00:00:00Z"}}`, 200)
	require.Greater(t, view["incarnation"], 1.0)
	require.Equal(t, "timestamp", view["start"].(map[string]any)["from"])
	view, _ = w.view(t, "POST", "/subscriptions/"+id+"/resume", "", 200)
	require.Equal(t, "starting", view["state"], "the nodes have not seen the new incarnation")
	view, _ = w.view(t, "POST", "/subscriptions/"+id+"/seek?restart=true", `{"start":{"offsets":{"0":5},"otherwise":"earliest"}}`, 200)
	require.Equal(t, map[string]any{"from": "offsets", "otherwise": "earliest", "resolved": true, "offsets": map[string]any{"orders": map[string]any{"0": 5.0}}}, view["start"])

	view, _ = w.view(t, "PATCH", "/subscriptions/"+id, `{"on_error":"dead-letter","dead_letter_topic":"{topic}.dlq","headers":["B","a"],"max_in_flight":5,"options":{"client.rack":"r"}}`, 200)
	require.Equal(t, []any{"a", "b"}, view["headers"])
	require.Equal(t, "{topic}.dlq", view["dead_letter_topic"])
	require.Equal(t, "r", view["options"].(map[string]any)["client.rack"])
	view, _ = w.view(t, "PATCH", "/subscriptions/"+id, `{"on_error":"skip"}`, 200)
	require.NotContains(t, view, "dead_letter_topic")

	w.view(t, "DELETE", "/subscriptions/"+id, "", 202)
	drained, _ := w.store.Subscription(id)
	w.view(t, "DELETE", "/subscriptions/"+id, "", 202)
	again, _ := w.store.Subscription(id)
	require.Equal(t, drained.Version, again.Version, "a repetition does not extend the time after which it is removed")
	view, _ = w.view(t, "GET", "/subscriptions/"+id, "", 200)
	require.Equal(t, "draining", view["state"])
	w.view(t, "POST", "/subscriptions/"+id+"/pause", "", 409)
	w.view(t, "DELETE", "/subscriptions/"+id+"?force=true", "", 202)
	w.view(t, "GET", "/subscriptions/"+id, "", 404)
	w.view(t, "DELETE", "/subscriptions/"+id, "", 404)
}

// A property that is accepted without an effect is reported wherever it can be set, and shown later.
func TestIgnoredOptionsAreReported(t *testing.T) {
	w, _ := streaming(t)
	id := w.subscribe(t, simpleSubscription)["id"].(string)
	view, _ := w.view(t, "GET", "/subscriptions/"+id, "", 200)
	require.NotContains(t, view, "info")
	for _, request := range [][2]string{{"PATCH", `{"options":{"statistics.interval.ms":"5"}}`}, {"GET", ""}} {
		view, _ = w.view(t, request[0], "/subscriptions/"+id, request[1], 200)
		require.Len(t, view["info"], 1, request[0])
		require.Contains(t, view["info"].([]any)[0].(map[string]any)["message"], "statistics.interval.ms has no effect")
	}
}

func TestUnreachableBrokers(t *testing.T) {
	w, streams := streaming(t)
	streams.unreached = &subscription.BrokerError{Reason: subscription.BrokerUnreachable, Message: "dial tcp: connection refused"}
	view := w.subscribe(t, simpleSubscription)
	require.Equal(t, "error", view["state"])
	require.Contains(t, view["message"], "connection refused")
	require.Equal(t, false, view["start"].(map[string]any)["resolved"])

	answer := w.ask(t, "POST", "/subscriptions?check=true", simpleSubscription)
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	requireError(t, answer, text(t, answer), "META0009", "connection refused")
	list, _ := w.store.Subscriptions()
	require.Len(t, list, 1)
	const seek = `{"start":"earliest"}`
	path := "/subscriptions/" + view["id"].(string) + "/seek?restart=true"
	passes := func(answer *http.Response, part string) {
		t.Helper()
		require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
		require.NotEmpty(t, answer.Header.Get("Retry-After"))
		body := text(t, answer)
		require.Contains(t, body, part)
		require.NotContains(t, body, "META0009")
	}
	passes(w.ask(t, "POST", path, seek), "the start was not changed, because the Kafka cluster main did not return the offsets: dial tcp: connection refused; retry later")

	streams.unreached = &subscription.BrokerError{Reason: subscription.BrokerUnavailable, Message: "NOT_LEADER_FOR_PARTITION"}
	passes(w.ask(t, "POST", "/subscriptions?check=true", simpleSubscription), "the subscription was not created, because the Kafka cluster main did not return its start: NOT_LEADER_FOR_PARTITION; retry later")
	passes(w.ask(t, "POST", path, seek), "NOT_LEADER_FOR_PARTITION")
	for _, reason := range []subscription.Reason{subscription.TopicMissing, subscription.NotAuthorized} {
		streams.unreached = &subscription.BrokerError{Reason: reason, Message: "refused"}
		answer = w.ask(t, "POST", "/subscriptions?check=true", simpleSubscription)
		requireError(t, answer, text(t, answer), "META0009", "refused")
		answer = w.ask(t, "POST", path, seek)
		requireError(t, answer, text(t, answer), "META0009", "the start was not changed")
	}

	streams.unreached = &subscription.BrokerError{Reason: subscription.TopicMissing, Message: "no topic orders"}
	view = w.subscribe(t, simpleSubscription)
	require.Equal(t, "no topic orders", view["message"])
	require.Equal(t, true, view["start"].(map[string]any)["resolved"], "it is read from its beginning")

	streams.unreached = errcode.New(errcode.META0009, "start: orders/0 has no offset 9").In("start")
	for path, body := range map[string]string{"/subscriptions": simpleSubscription, path: seek} {
		answer = w.ask(t, "POST", path, body)
		require.Equal(t, http.StatusBadRequest, answer.StatusCode)
		got := text(t, answer)
		require.Contains(t, got, `"message":"[META0009] start: orders/0 has no offset 9"`)
		require.Contains(t, got, `"field":"start"`)
	}
	list, _ = w.store.Subscriptions()
	require.Len(t, list, 2)
}

// The failure inbox has what subscriptions cannot deliver.
func TestBlockedTopicPartitionsAreFailures(t *testing.T) {
	w, streams := streaming(t)
	sub := w.subscribe(t, `{"source":"kafka://main/orders","sink":"service://Counter/add"}`)
	id := sub["id"].(string)
	streams.statuses = subscriptions.Statuses{ByID: map[string][]subscription.Status{id: {{Subscription: id, Incarnation: 1, State: subscription.Running, Partitions: []subscription.PartitionStatus{
		{Topic: "orders", Partition: 0, State: subscription.Running, Position: 3, End: 5},
		{Topic: "orders", Partition: 1, State: subscription.Blocked, Reason: subscription.KeyMissing, Message: "no key", Since: time.UnixMilli(5000), Position: 4, End: 9,
			Blocked: &subscription.BlockedRecord{Offset: 4, Reason: subscription.KeyMissing, Message: "no key", ValueSize: 3}},
		{Topic: "orders", Partition: 2, State: subscription.Blocked, Reason: subscription.LogTruncated, Message: "lost", Since: time.UnixMilli(7000), Position: 8, End: -1},
	}}}}}
	w.failures = &FailureGroups{}
	blocked := func(query string) []map[string]any {
		var page struct {
			Blocked []map[string]any `json:"blocked_topic_partitions"`
		}
		require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/failures"+query, ""))), &page))
		return page.Blocked
	}
	found := blocked("?service=Counter")
	require.Len(t, found, 2)
	require.Equal(t, "log_truncated", found[0]["reason"])
	require.NotContains(t, found[0], "record")
	require.Equal(t, id, found[1]["subscription_id"])
	require.EqualValues(t, 5, found[1]["lag_records"])
	require.EqualValues(t, 4, found[1]["record"].(map[string]any)["offset"])
	require.Len(t, blocked(""), 2)
	for _, query := range []string{"?service=Greeter", "?handler=x", "?status=paused", "?cursor=1.fg_0011223344556677"} {
		require.Empty(t, blocked(query), query)
	}
}

func TestBlockedRecords(t *testing.T) {
	w, streams := streaming(t)
	id := w.subscribe(t, simpleSubscription)["id"].(string)
	path := "/subscriptions/" + id + "/records/orders/3/42"
	streams.record = subscription.Record{Topic: "orders", Partition: 3, Offset: 42, Key: []byte{0xff}, Value: []byte("v"), KeySize: 1, ValueSize: 1, Headers: []subscription.RecordHeader{{Name: "h"}}}
	_, got := w.view(t, "GET", path, "", 200)
	require.JSONEq(t, `{"topic":"orders","partition":3,"offset":42,"key":{"base64":"/w=="},"value":{"text":"v"},"headers":[{"name":"h","value":null}],"key_bytes":1,"value_bytes":1}`, got)
	w.view(t, "POST", path+"/retry", "", 202)
	w.view(t, "POST", path+"/skip", "", 202)
	require.Equal(t, []string{"retry", "skip"}, streams.changed)
	for err, status := range map[error]int{subscription.ErrNotBlocked: 409, subscription.ErrNotRead: 503, errors.New("x"): 503} {
		streams.recordErr = err
		w.view(t, "POST", path+"/skip", "", status)
	}
	for bad, status := range map[string]int{"orders/-1/0": 400, "orders/x/0": 400, "orders/0/-1": 400, "orders/0/9223372036854775808": 400, "other/0/0": 404} {
		w.view(t, "GET", "/subscriptions/"+id+"/records/"+bad, "", status)
	}
}

func TestDeadLetters(t *testing.T) {
	w, streams := streaming(t)
	sub := w.subscribe(t, `{"source":"kafka://main/orders","sink":"service://Counter/add","on_error":"dead-letter"}`)
	id := sub["id"].(string)
	path := "/subscriptions/" + id + "/dead-letters"
	for offset := range int64(9) {
		streams.letters = append(streams.letters, subscription.DeadLetter{
			Record: subscription.Record{Topic: "orders", Offset: offset, Value: []byte("v"), ValueSize: 1}, Reason: subscription.KeyMissing, Message: "no key", At: time.UnixMilli(5000),
		})
	}
	streams.statuses = subscriptions.Statuses{ByID: map[string][]subscription.Status{id: {{Subscription: id, Incarnation: 1, State: subscription.Running, DeadLetters: 9}}}}
	view, _ := w.view(t, "GET", "/subscriptions/"+id, "", 200)
	require.EqualValues(t, 9, view["dead_letters"])
	w.failures = &FailureGroups{}
	page, _ := w.view(t, "GET", "/failures", "", 200)
	require.Equal(t, []any{map[string]any{"subscription_id": id, "source": "kafka://main/orders", "service": "Counter", "handler": "add", "records": 9.0}}, page["dead_letters"])

	_, got := w.view(t, "GET", path+"?limit=1", "", 200)
	require.JSONEq(t, `{"dead_letters":[{"topic":"orders","partition":0,"offset":0,"reason":"key_missing","message":"no key","at":"1970-01-01T00:00:05.000000000Z","key_bytes":0,"value_bytes":1}],"next":"orders/0/0","silent_nodes":["n3: no route"]}`, got)
	page, _ = w.view(t, "GET", path+"?limit=5&after=orders/0/5", "", 200)
	require.Len(t, page["dead_letters"], 3)
	require.NotContains(t, page, "next")
	_, got = w.view(t, "GET", path+"/orders/0/3", "", 200)
	require.JSONEq(t, `{"topic":"orders","partition":0,"offset":3,"key":null,"value":{"text":"v"},"headers":[],"key_bytes":0,"value_bytes":1,"reason":"key_missing","message":"no key","at":"1970-01-01T00:00:05.000000000Z"}`, got)

	w.view(t, "POST", path+"/orders/0/3/retry", "", 202)
	w.view(t, "POST", path+"/orders/0/3/retry", "", 404)
	w.view(t, "DELETE", path+"/orders/0/4", "", 202)
	rejected, _ := w.view(t, "POST", path+"/orders/0/7/retry", "", 409)
	require.Contains(t, rejected["message"], "key_missing: no key")
	result, _ := w.view(t, "POST", path+"/retry?limit=3", "", 200)
	require.Equal(t, map[string]any{"done": 3.0, "failed": 0.0, "next": "orders/0/2", "silent_nodes": []any{"n3: no route"}}, result)
	result, _ = w.view(t, "POST", path+"/retry?after=orders/0/2", "", 200)
	require.EqualValues(t, 3, result["done"])
	require.EqualValues(t, 1, result["failed"])
	require.Len(t, result["errors"], 1)
	result, _ = w.view(t, "DELETE", path, "", 200)
	require.EqualValues(t, 1, result["done"])

	for query, status := range map[string]int{"?limit=0": 400, "?limit=1001": 400, "?limit=x": 400, "?after=orders": 400, "?after=orders/-1/0": 400, "?after=orders/0/x": 400} {
		w.view(t, "GET", path+query, "", status)
	}
	w.view(t, "GET", "/subscriptions/sub_1/dead-letters", "", 400)
	w.view(t, "GET", path+"/other/0/1", "", 404)
}

func TestKafkaClusters(t *testing.T) {
	w, _ := streaming(t)
	list, got := w.view(t, "GET", "/kafka-clusters", "", 200)
	require.Len(t, list["clusters"], 2)
	require.NotContains(t, got, "geheim")
	id := w.subscribe(t, simpleSubscription)["id"].(string)
	view, _ := w.view(t, "GET", "/kafka-clusters/main?include_subscriptions=true", "", 200)
	require.Len(t, view["subscriptions"], 1)
	view, _ = w.view(t, "GET", "/kafka-clusters/fixed", "", 200)
	require.Equal(t, true, view["static"])
	require.Equal(t, "2023-11-14T22:15:00.000000000Z", view["created_at"])
	require.Equal(t, []any{}, view["subscriptions"], "clients require the field")
	view, _ = w.view(t, "GET", "/kafka-clusters/main", "", 200)
	require.Len(t, view["subscriptions"], 1)
	view, _ = w.view(t, "GET", "/kafka-clusters/main?include_subscriptions=false", "", 200)
	require.NotContains(t, view, "subscriptions")

	view, _ = w.view(t, "PATCH", "/kafka-clusters/main", `{"properties":{"bootstrap.servers":"127.0.0.1:3","sasl.password":"***"}}`, 400)
	require.Contains(t, view["message"], "bootstrap.servers changes where it is sent")
	view, _ = w.view(t, "PATCH", "/kafka-clusters/main", `{"properties":{"bootstrap.servers":"127.0.0.1:3","sasl.password":"geheim"}}`, 200)
	require.Equal(t, "127.0.0.1:3", view["properties"].(map[string]any)["bootstrap.servers"])
	stored, _ := w.store.KafkaCluster("main")
	require.Equal(t, "geheim", stored.Properties["sasl.password"])

	_, got = w.view(t, "DELETE", "/kafka-clusters/main", "", 409)
	require.Contains(t, got, id)
	w.view(t, "DELETE", "/kafka-clusters/main?force=true", "", 202)
	view, _ = w.view(t, "GET", "/subscriptions/"+id, "", 200)
	require.Equal(t, "orphaned", view["state"])
	for _, tc := range []struct {
		method, path, body, message string
		status                      int
	}{
		{"POST", "", `{"name":"fixed","properties":{"bootstrap.servers":"a:1"}}`, "ingress.kafka-clusters", 409},
		{"PATCH", "/fixed", `{"properties":{"bootstrap.servers":"a:1"}}`, "ingress.kafka-clusters", 409},
		{"DELETE", "/fixed", "", "ingress.kafka-clusters", 409},
		{"GET", "/none", "", "does not exist", 404},
		{"PATCH", "/none", `{"properties":{}}`, "does not exist", 404},
		{"DELETE", "/none", "", "does not exist", 404},
		{"DELETE", "/none?force=maybe", "", "force", 400},
		{"POST", "", `{"name":"a"}`, "need bootstrap.servers", 400},
		{"POST", "", `{"name":"","properties":{"bootstrap.servers":"a:1"}}`, "the cluster name", 400},
		{"POST", "", `{"name":"a\u0000b","properties":{"bootstrap.servers":"a:1"}}`, "form of a host name", 400},
		{"POST", "", `{"name":"a","properties":{"bootstrap.servers":"a:1","sasl.password":"***"}}`, "stands for the current value", 400},
		{"POST", "", `{"name":"a","properties":{"bootstrap.servers":1}}`, "each value of the field 'properties' must be a string", 422},
		{"POST", "", `{"name":1}`, "must be a string", 422},
		{"POST", "", `{"nam":"a"}`, "did you mean 'name'?", 422},
		{"POST", "", `[]`, "must be an object", 422},
		{"POST", "", `{`, "not valid JSON", 400},
		{"POST", "", `{"name":"a","properties":{"bootstrap.servers":"a:1","nonsense":"x"}}`, "Known properties", 400},
	} {
		_, got := w.view(t, tc.method, "/kafka-clusters"+tc.path, tc.body, tc.status)
		require.Contains(t, got, tc.message, tc.body)
	}
	answer := w.ask(t, "POST", "/kafka-clusters", `{"name":"again","properties":{"bootstrap.servers":"a:1"}}`)
	require.Equal(t, 201, answer.StatusCode)
	w.view(t, "POST", "/kafka-clusters", `{"name":"again","properties":{"bootstrap.servers":"a:1"}}`, 409)
	w.view(t, "PATCH", "/kafka-clusters/again", `{}`, 422)
}

func TestBadSubscriptionsAreRejected(t *testing.T) {
	w, _ := streaming(t)
	id := w.subscribe(t, simpleSubscription)["id"].(string)
	with := func(field string) string { return strings.Replace(simpleSubscription, "{", "{"+field+",", 1) }
	for _, tc := range []struct {
		body, message string
		status        int
	}{
		{`{}`, "needs the fields 'source'", 400},
		{`{"source":"kafka://main/orders"}`, "needs the fields 'source'", 400},
		{`{"source":5,"sink":"service://Counter/add"}`, "must be a string", 422},
		{`{"source":"http://main/orders","sink":"service://Counter/add"}`, "has the scheme", 400},
		{`{"source":"kafka://none/orders","sink":"service://Counter/add"}`, "Kafka cluster 'none' not found. Available clusters: fixed, main. Add one", 400},
		{`{"source":"kafka://main","sink":"service://Counter/add"}`, "names no topic", 400},
		{`{"source":"kafka://main/a\u0007","sink":"service://Counter/add"}`, "a character outside", 400},
		{`{"source":"kafka://main/orders","sink":"http://Counter/add"}`, "has the scheme", 400},
		{`{"source":"kafka://main/orders","sink":"service://Count/add"}`, "there is no service", 400},
		{`{"source":"kafka://main/orders","sink":"service://Counter/ad"}`, "did you mean 'add'?", 400},
		{with(`"topics":["a"]`), "separately", 400},
		{with(`"topics":"a"`), "must be an array", 422},
		{with(`"topics":[1]`), "must be", 422},
		{with(`"options":[]`), "must be an object", 422},
		{with(`"options":{"group.id":1}`), "must be a string", 422},
		{with(`"options":{"acks":"1"}`), "a property of producers", 400},
		{with(`"options":{"nonsense":"1"}`), "Known properties", 400},
		{with(`"options":{"bootstrap.servers":"a:b"}`), "host:port", 400},
		{with(`"options":{"sasl.mechanism":"GSSAPI"}`), "expected one of", 400},
		{with(`"options":{"sasl.password":"***"}`), "stands for the current value", 400},
		{with(`"start":"first"`), "start: from is", 400},
		{with(`"start":5`), "must be latest", 422},
		{with(`"start":[]`), "must be latest", 422},
		{with(`"start":{}`), "start: from is", 400},
		{with(`"start":{"form":"latest"}`), "did you mean 'from'?", 422},
		{with(`"start":{"timestamp":"yesterday"}`), "is not a time", 400},
		{with(`"start":{"timestamp":1.5}`), "neither a time", 400},
		{with(`"start":{"timestamp":-1}`), "out of range", 400},
		{with(`"start":{"timestamp":9223372036854775807}`), "out of range", 400},
		{with(`"start":{"from":"latest","timestamp":5}`), "belong together", 400},
		{with(`"start":{"from":"offsets"}`), "belong together", 400},
		{with(`"start":{"offsets":{}}`), "has no offsets", 400},
		{with(`"start":{"offsets":{"-1":5}}`), "expected a partition number", 400},
		{with(`"start":{"offsets":{"0":"5"}}`), "expected a partition number", 400},
		{with(`"start":{"offsets":{"0":-5}}`), "expected a partition number", 400},
		{with(`"start":{"offsets":{"other":{"0":5}}}`), "does not have", 400},
		{with(`"start":{"from":"latest","otherwise":"earliest"}`), "otherwise is for", 400},
		{with(`"start":{"from":"group","otherwise":"group"}`), "expected latest or earliest", 400},
		{with(`"ordering":"total"`), "ordering is", 400},
		{with(`"ordering":1`), "must be a string", 422},
		{with(`"on_error":"explode"`), "on_error is", 400},
		{with(`"dead_letter_topic":"x"`), "needs on_error", 400},
		{with(`"tombstones":"x"`), "tombstones is", 400},
		{with(`"on_recreate":"x"`), "on_recreate is", 400},
		{with(`"headers":"x"`), "must be an array", 422},
		{with(`"headers":["a b"]`), "name of an HTTP header", 400},
		{with(`"scope":"{x}"`), "scope: the placeholder", 400},
		{with(`"limit_key":"{topic}"`), "limit_key needs a scope", 400},
		{with(`"max_in_flight":0`), "max_in_flight is 0", 400},
		{with(`"max_in_flight":-1`), "out of range", 422},
		{with(`"max_in_flight":"5"`), "must be an integer", 422},
		{with(`"max_in_flight":10001`), "expected 1 to 10000", 400},
		{with(`"nonsense":1`), "unknown field 'nonsense'", 422},
		{with(`"scope":"` + strings.Repeat("x", 1001) + `"`), "at most 1000", 400},
		{with(`"scope":"` + strings.Repeat("x", 36) + `{key}"`), "is invalid for every record: expected a scope of 1 to 36", 400},
		{with(`"scope":"s","limit_key":"a/{key}/b"`), "is invalid for every record: expected one or two parts", 400},
	} {
		answer := w.ask(t, "POST", "/subscriptions", tc.body)
		got := text(t, answer)
		require.Equal(t, tc.status, answer.StatusCode, tc.body+got)
		require.Contains(t, got, tc.message, tc.body)
		require.NotContains(t, got, "geheim")
		if tc.status == 400 {
			require.Contains(t, got, "META0009", tc.body)
		}
	}
	list, _ := w.store.Subscriptions()
	require.Len(t, list, 1, "nothing was created")
	for _, tc := range []struct {
		method, path, body, message string
		status                      int
	}{
		{"PATCH", id, `{"source":"kafka://main/a"}`, "cannot be changed", 422},
		{"PATCH", id, `{"start":"latest"}`, "/seek", 422},
		{"PATCH", id, `{"sink":"service://Counter/none"}`, "has no handler", 400},
		{"PATCH", id, `{"max_in_flight":0}`, "max_in_flight is 0", 400},
		{"PATCH", id, `{"dead_letter_topic":"x"}`, "needs on_error", 400},
		{"POST", id + "/seek", `{}`, "'start' is missing", 422},
		{"POST", id + "/seek?restart=perhaps", `{"start":"latest"}`, "restart", 400},
		{"POST", id + "/pause?reason=" + strings.Repeat("x", 513), "", "at most 512", 400},
		{"POST", id + "/pause?reason=%00", "", "control characters", 400},
		{"POST", id + "/pause?why=x", "", "unknown query parameter", 400},
		{"GET", "sub_1abc", "", "has 27 characters", 400},
		{"GET", "inv_1abc", "", "starts with", 400},
		{"GET", strings.Replace(id, "sub_10", "sub_11", 1), "", "does not exist", 404},
	} {
		_, got := w.view(t, tc.method, "/subscriptions/"+tc.path, tc.body, tc.status)
		require.Contains(t, got, tc.message, tc.path+tc.body)
	}
}

// With a scope, each record would block while flow control is off.
func TestASubscriptionWithoutAnyKafkaCluster(t *testing.T) {
	w, _ := streaming(t, func(c *Config) { c.KafkaClusters = nil })
	w.view(t, "DELETE", "/kafka-clusters/main", "", 202)
	_, got := w.view(t, "POST", "/subscriptions", simpleSubscription, 400)
	require.Contains(t, got, "not found. There are no Kafka clusters. Add one with POST /kafka-clusters")
}

func TestScopesOfSubscriptionsNeedFlowControl(t *testing.T) {
	w, _ := streaming(t, func(c *Config) { c.FlowControl = false })
	id := w.subscribe(t, simpleSubscription)["id"].(string)
	scoped := strings.Replace(simpleSubscription, "{", `{"scope":"{key}",`, 1)
	for path, method := range map[string]string{"": "POST", "/" + id: "PATCH"} {
		body := scoped
		if method == "PATCH" {
			body = `{"scope":"{key}"}`
		}
		_, got := w.view(t, method, "/subscriptions"+path, body, 400)
		require.Contains(t, got, "scope: flow control is off on this cluster")
		require.Contains(t, got, "META0009")
	}
}

func TestSubscriptionsNeedFeatureLevel4(t *testing.T) {
	w := seeded(t, nil)
	_, got := w.view(t, "POST", "/kafka-clusters", `{"name":"a","properties":{"bootstrap.servers":"a:1"}}`, 409)
	require.Contains(t, got, "needs feature level 4")
}

// Forms show an error at the field that it is about.
func TestErrorsOfSubscriptionsNameTheField(t *testing.T) {
	w, _ := streaming(t)
	const sink = `"sink":"service://Counter/add"`
	for body, field := range map[string]string{
		`{"source":"kafka:/main","` + sink[1:] + `}`:                                                          "source",
		`{"source":"kafka://main","` + sink[1:] + `}`:                                                         "source",
		`{"source":"kafka://none/orders","` + sink[1:] + `}`:                                                  "source",
		`{"source":"kafka://main/orders","sink":"service://Countr/add"}`:                                      "sink",
		`{"source":"kafka://main/orders","sink":"Counter/add"}`:                                               "sink",
		`{"source":"kafka://main/orders",` + sink + `,"start":"soon"}`:                                        "start",
		`{"source":"kafka://main/orders",` + sink + `,"ordering":"any"}`:                                      "ordering",
		`{"source":"kafka://main/orders",` + sink + `,"on_error":"dead-letter","dead_letter_topic":"orders"}`: "dead_letter_topic",
		`{"source":"kafka://main/orders",` + sink + `,"scope":"{nothing}"}`:                                   "scope",
		`{"source":"kafka://main/orders",` + sink + `,"limit_key":"{key}"}`:                                   "limit_key",
		`{"source":"kafka://main/orders",` + sink + `,"headers":["a b"]}`:                                     "headers",
		`{"source":"kafka://main/orders",` + sink + `,"max_in_flight":0}`:                                     "max_in_flight",
		`{"source":"kafka://main/orders",` + sink + `,"options":{"fetch.min.bytes":"x"}}`:                     "fetch.min.bytes",
		`{"source":"kafka://main/orders",` + sink + `,"options":{"sasl.mechanism":""}}`:                       "sasl.mechanism",
	} {
		answer := w.ask(t, http.MethodPost, "/subscriptions", body)
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, body)
		require.Contains(t, text(t, answer), `"field":"`+field+`"`, body)
	}
	for body, field := range map[string]string{
		`{"name":"a b","properties":{"bootstrap.servers":"127.0.0.1:2"}}`:                          "name",
		`{"name":"other","properties":{}}`:                                                         "bootstrap.servers",
		`{"name":"other","properties":{"bootstrap.servers":"127.0.0.1:2","bootstrap.server":"x"}}`: "bootstrap.server",
	} {
		require.Contains(t, text(t, w.ask(t, http.MethodPost, "/kafka-clusters", body)), `"field":"`+field+`"`, body)
	}
}

// As for clusters, requests cannot choose which files the server reads.
func TestOptionsOfSubscriptionsNameNoFiles(t *testing.T) {
	w, _ := streaming(t)
	id := w.subscribe(t, simpleSubscription)["id"].(string)
	options := `"options":{"security.protocol":"sasl_ssl","sasl.password":"p","ssl.ca.location":"/dev/zero"}`
	rejected, _ := w.view(t, "POST", "/subscriptions", `{"source":"kafka://main/files","sink":"service://Greeter/greet",`+options+`}`, 422)
	require.Contains(t, rejected["message"], "ssl.ca.pem")
	rejected, _ = w.view(t, "PATCH", "/subscriptions/"+id, `{`+options+`}`, 422)
	require.Contains(t, rejected["message"], "ssl.ca.pem")
}

func TestTheNumbersOfSubscriptionsAndClustersAreLimited(t *testing.T) {
	w, _ := streaming(t, func(c *Config) { c.Limits.Subscriptions, c.Limits.KafkaClusters = 2, 1 })
	w.subscribe(t, simpleSubscription)
	second := w.subscribe(t, simpleSubscription)["id"].(string)
	for path, body := range map[string]string{
		"/subscriptions":  simpleSubscription,
		"/kafka-clusters": `{"name":"other","properties":{"bootstrap.servers":"b:9092"}}`,
	} {
		_, rejected := w.view(t, "POST", path, body, http.StatusTooManyRequests)
		require.Contains(t, rejected, "META0021")
		require.Contains(t, rejected, "admin."+strings.TrimPrefix(path, "/")+"-limit is")
	}
	w.view(t, "PATCH", "/subscriptions/"+second, `{"on_error":"skip"}`, http.StatusOK)
	w.view(t, "DELETE", "/subscriptions/"+second+"?force=true", "", http.StatusAccepted)
}
