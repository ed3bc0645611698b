package config

import (
	"net/url"
	"slices"
	"strings"
)

// Setting is one key of a configuration.
type Setting struct{ Key, Value string }

// secret are keys whose values may hold what must not be shown.
var secret = []string{
	"worker.invoker.additional-request-headers", "worker.invoker.aws-assume-role-external-id",
}

// hidden stands for what is not shown.
const hidden = "***"

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
		switch {
		case slices.Contains(secret, k.path) && text != "" && text != "{}":
			text = hidden
		case strings.Contains(text, "@"):
			text = redacted(text)
		}
		all = append(all, Setting{k.path, text})
	}
	return all
}

// redacted is an address without its password.
func redacted(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}
