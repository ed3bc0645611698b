package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// live are the keys and sections whose changes take effect while the server runs.
var live = []string{
	"log-filter",
	"default-journal-retention", "max-journal-retention",
	"default-idempotency-retention", "max-idempotency-retention",
	"default-workflow-completion-retention", "max-workflow-completion-retention",
	"default-retry-policy", "max-retry-policy-max-attempts",
	"worker.invoker.inactivity-timeout", "worker.invoker.abort-timeout",
}

func isLive(path string) bool {
	section, _, _ := strings.Cut(path, ".")
	return slices.Contains(live, path) || slices.Contains(live, section)
}

// Change is a key whose value differs from the one that was loaded before.
type Change struct {
	Key string
	// From and To are the values as in a dump, "not set" without one; only of keys that apply while the
	// server runs, so they contain no secrets.
	From, To string
	// Pending means that the server uses another value until it is restarted.
	Pending bool
}

// Reloader loads the configuration again when its file has changed. It is not safe for concurrent use.
type Reloader struct {
	running *Config      // with which the server was started
	last    *Loaded      // the last one that was valid
	file    *fileContent // when Reload last read it; nil: not yet
	seen    *fileContent // in the last call of Changed; nil: not called yet
}

// fileContent is what a file contained at one time.
type fileContent struct {
	text     string
	readable bool
}

// Reloader returns the reloader of a server that runs with the configuration.
func (l *Loaded) Reloader() *Reloader { return &Reloader{running: l.Config, last: l} }

// Changed reports whether Reload should be called: the file differs from what Reload read last, or Reload was never called,
// since the file may have changed after Load. A change counts only if two calls in a row see the same content: until
// then, the file may still be being written.
func (r *Reloader) Changed() bool {
	if r.last.Options.ConfigFile == "" || r.readOnce() {
		return false
	}
	content := r.content()
	complete := r.seen != nil && content == *r.seen
	r.seen = &content
	return complete && (r.file == nil || content != *r.file)
}

// readOnce reports whether the file cannot be read again: a pipe would be empty, or block.
func (r *Reloader) readOnce() bool {
	info, err := os.Stat(r.last.Options.ConfigFile)
	return err == nil && !info.Mode().IsRegular()
}

// content returns what the file contains. If it cannot be read, Load returns the error.
func (r *Reloader) content() fileContent {
	data, err := os.ReadFile(r.last.Options.ConfigFile)
	return fileContent{text: string(data), readable: err == nil}
}

// Reload loads the configuration from the sources of the start. It returns the configuration and what differs
// from the last one that was valid. The caller applies the values of live keys only.
func (r *Reloader) Reload() (*Config, []Change, error) {
	if r.readOnce() {
		return nil, nil, fmt.Errorf("%s can be read only when the server starts, since it is no regular file", r.last.Options.ConfigFile)
	}
	content := r.content() // before Load reads it, so that a later change is noticed
	r.file = &content
	again, err := Load(r.last.args, r.last.environ)
	if err != nil {
		return nil, nil, err
	}
	changes := r.compare(again.Config)
	r.last = again
	return again.Config, changes, nil
}

func (r *Reloader) compare(cfg *Config) (changes []Change) {
	before, running := index(keys(r.last.Config)), index(keys(r.running))
	for _, k := range keys(cfg) {
		if k.section() {
			continue
		}
		was, now := before[k.path].text(), k.text()
		switch {
		case was == now:
		case isLive(k.path):
			changes = append(changes, Change{Key: k.path, From: was, To: now})
		default:
			changes = append(changes, Change{Key: k.path, Pending: now != running[k.path].text()})
		}
	}
	return changes
}

// text returns the value as in a dump, but with secrets.
func (k key) text() string {
	if text, set := textOf(k.value); set {
		return text
	}
	return "not set"
}

// listOfLive returns the live keys for documents.
func listOfLive() string {
	var names []string
	for _, path := range live {
		names = append(names, "`"+path+"`")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
