package config

import (
	"net/url"
	"slices"
	"strings"

	"platform/internal/subscription"
)

// Setting is a key of the configuration with its value.
type Setting struct{ Key, Value string }

// secret are keys whose values may contain secrets.
var secret = []string{
	"tracing-headers", "worker.invoker.additional-request-headers", "worker.invoker.aws-assume-role-external-id",
	"security.oidc.client-secret", "security.secrets.keys", "security.node-tls.join-token",
}

const (
	// hidden replaces secrets.
	hidden = "***"
	// clusterNameHeader is sent to endpoints by default, and is not a secret.
	clusterNameHeader = "x-platform-cluster-name"
)

// Settings are all keys that have a value, with secrets hidden, in the order of the
// file.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, k := range keys(c) {
		if k.section() {
			continue
		}
		text, set := textOf(k.value)
		if !set {
			continue
		}
		all = append(all, Setting{k.path, k.withoutSecret(text)})
	}
	return all
}

// withoutSecret returns the text of a value with the secrets in it hidden: values of tables
// keep their names.
func (k key) withoutSecret(text string) string {
	if clusters, ok := k.value.Interface().(KafkaClusters); ok {
		return clustersText(clusters, subscription.Redact)
	}
	if slices.Contains(secret, k.path) && text != "" && text != hidden {
		table, ok := k.value.Interface().(map[string]string)
		if !ok {
			return hidden
		}
		shown := make(map[string]string, len(table))
		for name, value := range table {
			if name != clusterNameHeader {
				value = hidden
			}
			shown[name] = value
		}
		return tableText(shown)
	}
	if strings.Contains(text, "@") {
		return redacted(text)
	}
	return text
}

// redacted returns an address without its password.
func redacted(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}
