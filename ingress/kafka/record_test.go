package kafka

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/subscription"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition/machine"
)

// noDefaults are those of a server without options for handlers.
func noDefaults() *metadata.Defaults { return &metadata.Defaults{} }

// The key of a record is the ID of a workflow, which the first record starts.
func TestRecordsStartWorkflows(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "ada", "1"), record("orders", 0, "ada", "2"), record("orders", 0, "bob", "3"), record("orders", 0, "", "4"))
	w.subscribe("sub_1", "Flow/run", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("the one without an ID blocks", func() bool {
		st := h.status("orders", 0)
		return st.Reason == subscription.KeyMissing && st.Position == 3
	})
	found := map[string]string{}
	for _, c := range w.created() {
		require.Equal(t, target.WorkflowRun, c.target.Type)
		require.Equal(t, ids.OfWorkflow("", "Flow", c.target.Key), c.id)
		found[c.target.Key] = string(c.body)
	}
	require.Equal(t, map[string]string{"ada": "1", "bob": "3"}, found)
	require.Equal(t, 2, w.createdCount())
}

// Shared handlers have keys as well.
func TestRecordsCallSharedHandlers(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "ada", "1"), record("orders", 0, "", "2"))
	w.source.register("Orders/add", "Orders/peek", "Flow/watch")
	w.subscribe("sub_1", "Orders/peek", []string{"orders"})
	w.subscribe("sub_2", "Flow/watch", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("those without a key block", func() bool {
		all := h.engine.Statuses("", false)
		return len(all) == 2 && summary(all[0]).Reason == subscription.KeyMissing && summary(all[1]).Reason == subscription.KeyMissing
	})
	types := map[target.Type]string{}
	for _, c := range w.created() {
		types[c.target.Type] = c.target.Key
	}
	require.Equal(t, map[target.Type]string{target.ObjectShared: "ada", target.WorkflowShared: "ada"}, types)
}

func TestTombstonesAreSkippedOnRequest(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"), &kgo.Record{Topic: "orders", Key: []byte("a")}, &kgo.Record{Topic: "orders"}, record("orders", 0, "a", ""), record("orders", 0, "a", "4"))
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.Tombstones = subscription.SkipTombstones })
	h := w.start().leadAll()
	w.eventually("all are read", func() bool { st := h.status("orders", 0); return st.Position == 5 && st.Lag() == 0 })
	w.requireOnce("orders", map[int32][]int64{0: {0, 3, 4}})
	require.Equal(t, "", string(w.created()[1].body), "an empty value is not a tombstone")
}

func TestOnlyChosenHeadersArePassedOn(t *testing.T) {
	rec := &kgo.Record{Topic: "orders", Value: []byte("1"), Headers: []kgo.RecordHeader{{Key: "Tenant", Value: []byte("x")}, {Key: "color", Value: []byte("red")}}}
	c := converter{sub: &subscription.Subscription{ID: "sub_1", Options: subscription.Options{Headers: []string{"tenant"}}}}
	names := map[string]string{}
	for _, h := range c.headers(&machine.Invoke{}, rec) {
		names[h.Key] = h.Value
	}
	require.Equal(t, "x", names["kafka.header.tenant"])
	require.NotContains(t, names, "kafka.header.color")
	require.Equal(t, "orders", names["kafka.topic"])
}

func TestScopesAndLimitKeysOfRecords(t *testing.T) {
	rec := &kgo.Record{Topic: "orders", Partition: 3, Key: []byte("ada"), Headers: []kgo.RecordHeader{{Key: "Tenant", Value: []byte("first")}, {Key: "tenant", Value: []byte("acme")}}}
	template := func(text string) subscription.Template {
		parsed, err := subscription.ParseTemplate(text)
		require.NoError(t, err)
		return parsed
	}
	r := &routing{scope: template("{header:tenant}"), limitKey: template("{topic}-{partition}/{key}")}
	c, inv := converter{cfg: &Config{FlowControl: true}}, machine.Invoke{}
	require.Nil(t, c.scope(&inv, r, rec))
	require.Equal(t, "acme", inv.Target.Scope, "the last header of a name")
	require.Equal(t, "orders-3/ada", inv.LimitKey)

	c, inv = converter{cfg: &Config{}}, machine.Invoke{}
	require.Contains(t, c.scope(&inv, r, rec).message, "flow control is off")
	require.Nil(t, c.scope(&inv, &routing{}, rec))
	require.Empty(t, inv.Target.Scope)
}

// Records that are too large, or have a key that is, block their topic partition with the reason.
func TestRecordsThatAreTooLarge(t *testing.T) {
	w := newTestCluster(t, 2)
	w.largeTopic("values")
	w.largeTopic("keys")
	value := strings.Repeat("x", 1<<20+1)
	w.produceLarge(record("values", 0, "a", value[:1<<20]), record("values", 0, "a", value), record("values", 0, "a", "last"))
	w.produceLarge(record("keys", 0, strings.Repeat("k", limits.Key), "1"), record("keys", 0, strings.Repeat("k", limits.Key+1), "2"), record("keys", 0, "k", "last"))
	w.subscribe("sub_1", "Orders/add", []string{"values"})
	w.subscribe("sub_2", "Orders/add", []string{"keys"})
	h := w.start().leadAll()
	for sub, want := range map[string]struct {
		topic  string
		reason subscription.Reason
		text   string
	}{
		"sub_1": {"values", subscription.RecordTooLarge, "the value has 1048577 bytes, the limit is 1048576"},
		"sub_2": {"keys", subscription.KeyTooLarge, "the limit is"},
	} {
		w.eventually(want.topic+" blocks", func() bool { return h.status(want.topic, 0).State == subscription.Blocked })
		st := h.status(want.topic, 0)
		require.Equal(t, want.reason, st.Reason)
		require.Contains(t, st.Blocked.Message, want.text)
		require.EqualValues(t, 1, st.Blocked.Offset)
		require.NoError(t, h.engine.Skip(t.Context(), subscription.RecordID{Subscription: sub, Topic: want.topic, Offset: 1}))
		w.eventually("it continues", func() bool { return h.status(want.topic, 0).Position == 3 })
	}
	require.Equal(t, 4, w.createdCount())
}

// Value, key and headers together are limited as well.
func TestHeadersThatAreTooLarge(t *testing.T) {
	w := newTestCluster(t, 2)
	c := converter{&subscription.Subscription{ID: "sub_1", Options: subscription.Options{AllHeaders: true}}, &Config{Source: w.source, Partitions: w, Defaults: noDefaults, RecordSize: 1 << 20}}
	rec := record("orders", 0, "a", "1")
	rec.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte(strings.Repeat("x", limits.Message+1<<20))}}
	_, _, bad := c.convert(&machine.Stream{}, &routing{Service: "Greeter", Handler: "greet"}, rec)
	require.NotNil(t, bad)
	require.Equal(t, subscription.RecordTooLarge, bad.reason)
	require.Contains(t, bad.message, "value, key and headers")

	rec.Headers = make([]kgo.RecordHeader, limits.Pairs)
	_, _, bad = c.convert(&machine.Stream{}, &routing{Service: "Greeter", Handler: "greet"}, rec)
	require.Nil(t, bad)
	rec.Headers = make([]kgo.RecordHeader, limits.Pairs+1)
	_, _, bad = c.convert(&machine.Stream{}, &routing{Service: "Greeter", Handler: "greet"}, rec)
	require.NotNil(t, bad)
	require.Equal(t, "record_too_large: the record has 10001 headers, the limit is 10000", bad.Error())
}

// What an error of a broker means.
func TestErrorsOfBrokers(t *testing.T) {
	for want, errs := range map[subscription.Reason][]error{
		subscription.DecodeFailed:     {kerr.CorruptMessage, &kgo.ErrDecompressTooLarge{}},
		subscription.LogTruncated:     {&kgo.ErrDataLoss{Topic: "orders", ConsumedTo: 7, ResetTo: 5}},
		subscription.OffsetOutOfRange: {kerr.OffsetOutOfRange},
		subscription.TopicRecreated:   {kerr.UnknownTopicID},
		subscription.TopicMissing:     {kerr.UnknownTopicOrPartition},
		subscription.NotAuthorized:    {kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.IllegalSaslState, errTokenRefused},
	} {
		for _, err := range errs {
			require.Equal(t, want, asFault(fetchError(err, 7)).reason, "%v", err)
		}
	}
}

// Records for a handler that is not public wait until it is, also those that are too large to be held.
func TestRecordsForAPrivateHandlerWait(t *testing.T) {
	for name, value := range map[string]string{"small": "1", "large": strings.Repeat("x", 2*maxHeld)} {
		t.Run(name, func(t *testing.T) {
			w := newTestCluster(t, 2)
			w.topic("orders", 1)
			w.produce(record("orders", 0, "ada", value))
			public := new(bool)
			w.source.schemas.Services["Orders"].Options.Public = public
			w.subscribe("sub_1", "Orders/add", []string{"orders"})
			h := w.start().leadAll()
			w.eventually("it blocks", func() bool { return h.status("orders", 0).Reason == subscription.HandlerNotFound })
			s := h.engine.stream(subscription.RecordID{Subscription: "sub_1", Topic: "orders"})
			require.False(t, s.hasHandler(), "it would be fetched again every two seconds")
			w.source.register("Orders/add")
			w.eventually("it is stored", func() bool { return w.createdCount() == 1 })
		})
	}
}
