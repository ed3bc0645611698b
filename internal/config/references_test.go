package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecretsAreReferences(t *testing.T) {
	dir := t.TempDir()
	private, public := filepath.Join(dir, "private"), filepath.Join(dir, "public")
	require.NoError(t, os.WriteFile(private, []byte("from-file\n"), 0o600))
	require.NoError(t, os.WriteFile(public, []byte("from-file\n"), 0o644))
	loaded, err := loadFile(t, `
[tracing-headers]
authorization = "env:COLLECTOR_TOKEN"
other = "as it is"
[worker.invoker]
additional-request-headers = { x-key = "file:`+private+`" }
http-proxy = "env:PROXY"
[[ingress.kafka-clusters]]
name = "main"
brokers = ["127.0.0.1:9092"]
properties = { "sasl.password" = "file:`+private+`", "sasl.username" = "u", "sasl.mechanism" = "PLAIN", "security.protocol" = "sasl_plaintext", "client.id" = "env:COLLECTOR_TOKEN" }
`, "COLLECTOR_TOKEN=from-env", "PROXY=http://u:from-env@proxy:3128")
	require.NoError(t, err)
	cfg := loaded.Config
	require.Equal(t, map[string]string{"authorization": "from-env", "other": "as it is"}, cfg.Tracing.Headers)
	require.Equal(t, "from-file", cfg.Worker.Invoker.AdditionalRequestHeaders["x-key"])
	require.Equal(t, "http://u:from-env@proxy:3128", cfg.Worker.Invoker.HTTPProxy)
	require.Equal(t, "from-file", cfg.Ingress.KafkaClusters[0].Properties["sasl.password"])
	require.Equal(t, "env:COLLECTOR_TOKEN", cfg.Ingress.KafkaClusters[0].Properties["client.id"], "it is shown, so it must not become a secret")
	var dump strings.Builder
	for _, s := range cfg.Settings() {
		dump.WriteString(s.Key + "=" + s.Value + "\n")
	}
	require.NotContains(t, dump.String(), "from-")

	for name, want := range map[string]string{
		"env:NOT_SET": "NOT_SET is not set", "file:" + public: "chmod 600", "file:" + dir: "is a directory", "file:" + dir + "/none": "no such file", "file:": "no such file",
	} {
		_, err := loadFile(t, `tracing-headers = { a = "`+name+`" }`+"\n")
		require.ErrorContains(t, err, want, name)
	}
}
