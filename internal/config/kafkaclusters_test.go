package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKafkaClusters(t *testing.T) {
	want := KafkaClusters{
		{Name: "main", Static: true, Properties: map[string]string{
			"bootstrap.servers": "PLAINTEXT://a:1,b:2", "sasl.username": "u", "sasl.password": "geheim", "fetch.min.bytes": "5", "enable.auto.commit": "true",
		}},
		{Name: "other", Static: true, Properties: map[string]string{"bootstrap.servers": "c:3", "client.id": "x"}},
	}
	loaded, err := loadFile(t, `
[[ingress.kafka-clusters]]
name = "main"
bootstrap.servers = ["PLAINTEXT://a:1", "b:2"]
sasl.username = "u"
"sasl.password" = "geheim"
fetch.min.bytes = 5
enable.auto.commit = true
[[ingress.kafka-clusters]]
name = "other"
properties = { "bootstrap.servers" = "c:3", "client.id" = "x" }
`)
	require.NoError(t, err)
	require.Equal(t, want, loaded.Config.Ingress.KafkaClusters)

	again, err := loadFile(t, loaded.Dump())
	require.NoError(t, err)
	want[0].Properties["sasl.password"] = "***"
	require.Equal(t, want, again.Config.Ingress.KafkaClusters)
	require.NotContains(t, loaded.Dump(), "geheim")
	for _, s := range loaded.Config.Settings() {
		require.NotContains(t, s.Value, "geheim")
	}
	for _, text := range []string{`[{ name = "a", brokers = ["b:1"] }]`, `[{"name":"a","brokers":["b:1"]}]`} {
		loaded, err = loadFile(t, "", "PLATFORM_INGRESS__KAFKA_CLUSTERS="+text)
		require.NoError(t, err, text)
		require.Equal(t, KafkaClusters{{Name: "a", Static: true, Properties: map[string]string{"bootstrap.servers": "b:1"}}}, loaded.Config.Ingress.KafkaClusters)
	}
}

func TestInvalidKafkaClusters(t *testing.T) {
	for text, part := range map[string]string{
		`[5]`:                           "a list of tables",
		`5`:                             "expected",
		`[{brokers = ["a:1"]}]`:         "the cluster name",
		`[{name = "a"}]`:                "need bootstrap.servers",
		`[{name = 1, brokers = ["a"]}]`: "expected a name",
		`[{name = "a", brokers = 5}]`:   "brokers: expected a text or a list of texts",
		`[{name = "a", brokers = [5]}]`: "brokers: expected a list of texts",
		`[{name = "a", brokers = ["a:1"], nonsense = "x"}]`:                                        "there is no property",
		`[{name = "a", broker = ["a:1"]}]`:                                                         `there is no property "broker"; did you mean`,
		`[{name = "a", brokers = ["a:1"], "client.id" = [5]}]`:                                     "client.id: expected a list of texts",
		`[{name = "a", brokers = ["a:1"], "bootstrap.servers" = "b:1"}]`:                           "bootstrap.servers occurs twice",
		`[{name = "a", brokers = ["a:1"], "client.id" = "x", properties = { "client.id" = "y" }}]`: "client.id occurs twice",
		`[{name = "a", brokers = ["a:1"], properties = "x"}]`:                                      "a table of properties",
		`[{name = "a", brokers = ["a:1"]}, {name = "a", brokers = ["a:1"]}]`:                       "occurs twice",
	} {
		_, err := loadFile(t, "[ingress]\nkafka-clusters = "+text+"\n")
		require.ErrorContains(t, err, part, text)
		require.True(t, strings.Contains(err.Error(), "ingress.kafka-clusters"), err)
	}
}
