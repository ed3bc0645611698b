package sdk

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/test/harness"
	"platform/test/sdk/contract"
)

// eventCases deliver records of a topic to handlers.
var eventCases = []testCase{
	{"a record reaches the object of its key", func(e *env) {
		key := e.id("größe")
		e.subscribe("Store/script", &kgo.Record{Key: []byte(key), Value: e.encode([]contract.Op{set("from", "a topic")})})
		require.Eventually(e, func() bool {
			out := e.script(key, contract.Op{Op: "get", Key: "from"})
			return len(out) == 1 && out[0].Present && out[0].Value == "a topic"
		}, testTimeout, pollInterval, "the state is set")
	}},
	{"a record arrives with its bytes", func(e *env) {
		body := []byte{0, 1, 2, 0xff, 0xfe, '\n', 0}
		e.subscribe("Echo/bytes", &kgo.Record{Value: body})
		e.awaitOutput("bytes", body)
	}},
	{"the headers of a record reach the handler", func(e *env) {
		want := map[string]string{
			"kafka.topic": "events", "kafka.partition": "0", "kafka.timestamp": "1700000000123", "kafka.key": "_wBr", "kafka.tombstone": "",
			"kafka.header.color": "one two", "kafka.header.bytes.base64": "AP9-",
		}
		var records []*kgo.Record // each asks for one header
		for name := range want {
			records = append(records, &kgo.Record{
				Key: []byte("\xff\x00k"), Value: e.encode(name), Timestamp: time.UnixMilli(1_700_000_000_123),
				Headers: []kgo.RecordHeader{{Key: "Color", Value: []byte("one two")}, {Key: "bytes", Value: []byte("\x00\xff~")}},
			})
		}
		e.subscribe("Echo/header", records...)
		for _, value := range want {
			e.awaitOutput("header", e.encode(value))
		}
	}},
}

// subscribe delivers records of a topic of a broker in this process to a handler.
func (e *env) subscribe(sink string, records ...*kgo.Record) {
	e.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "events"))
	require.NoError(e, err)
	e.Cleanup(broker.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.DefaultProduceTopic("events"))
	require.NoError(e, err)
	e.Cleanup(client.Close)
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(e.lang + "-" + sink))
	e.create("/kafka-clusters", map[string]any{"name": name, "properties": map[string]string{"bootstrap.servers": broker.ListenAddrs()[0]}})
	e.create("/subscriptions", map[string]any{"source": "kafka://" + name + "/events", "sink": "service://" + e.lang + sink})
	require.NoError(e, client.ProduceSync(e.bounded(), records...).FirstErr())
}

// create creates something with the admin API.
func (e *env) create(path string, body any) {
	e.Helper()
	resp, err := http.Post(e.server.Client.Admin()+path, "application/json", bytes.NewReader(e.encode(body)))
	require.NoError(e, err)
	defer resp.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(resp.Body)
	require.NoError(e, err)
	require.Equal(e, http.StatusCreated, resp.StatusCode, text.String())
}

// awaitOutput waits until an invocation of a handler of Echo that a subscription made has
// returned something.
func (e *env) awaitOutput(handler string, output []byte) {
	e.Helper()
	query := fmt.Sprintf("SELECT j.entry_json FROM sys_journal j JOIN sys_invocation i ON i.id = j.id WHERE i.target_service_name = '%sEcho' AND i.target_handler_name = '%s' "+
		"AND i.invoked_by = 'subscription' AND j.entry_type = 'Command: Output'", e.lang, handler)
	texts := make([]string, len(output))
	for i, b := range output {
		texts[i] = strconv.Itoa(int(b))
	}
	numbers := strings.Join(texts, ",")
	var resp harness.Response
	require.Eventually(e, func() bool {
		var err error
		resp, err = e.server.Client.Query(e.bounded(), query)
		return err == nil && strings.Contains(strings.ReplaceAll(string(resp.Body), " ", ""), "["+numbers+"]")
	}, testTimeout, pollInterval, "the output %s: %s", numbers, resp.Body)
}
