package harness

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

//go:embed targets/*.json
var builtin embed.FS

// Target describes how a server implementation is started and addressed. Args and
// values of Env may contain {name}, {host}, {data}, {node_port}, {ingress_port},
// {admin_port}.
type Target struct {
	Name      string   `json:"name"`
	Server    string   `json:"server"`     // environment variable with the path of the server binary
	Build     string   `json:"build"`      // package to build when that variable is unset
	Prefix    string   `json:"prefix"`     // of ingress paths and, as x-<prefix>-id, of headers
	EnvPrefix string   `json:"env_prefix"` // prefix of every key of Env
	Args      []string `json:"args"`
	// Env is of one node. Its disk timeout is above the default, because the disk of a machine that runs many tests may
	// stall for that long, and tests do not restart nodes that exit.
	Env map[string]string `json:"env"`
	// Secure makes the benchmark use TLS and a token for calls.
	Secure bool `json:"secure"`
	// Traced makes the benchmark run a collector, which the server exports its spans to.
	Traced bool `json:"traced"`
}

// LoadTarget loads a target by the path of a JSON file or the name of a built-in target.
func LoadTarget(name string) (Target, error) {
	read := os.ReadFile
	path := name
	if !strings.Contains(name, "/") && !strings.HasSuffix(name, ".json") {
		read, path = builtin.ReadFile, "targets/"+name+".json"
	}
	raw, err := read(path)
	if err != nil {
		return Target{}, fmt.Errorf("read target %q: %w", name, err)
	}
	t, err := ParseTarget(raw)
	if err != nil {
		return Target{}, fmt.Errorf("parse target %s: %w", path, err)
	}
	return t, nil
}

// ParseTarget parses a target. Unknown fields are an error, since a misspelled field
// would silently test a different configuration.
func ParseTarget(raw []byte) (Target, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var t Target
	if err := decoder.Decode(&t); err != nil {
		return Target{}, err
	}
	return t, nil
}

// TargetUnderTest returns the target that SERVER_UNDER_TEST names, "platform" if unset.
func TargetUnderTest() (Target, error) {
	name := os.Getenv("SERVER_UNDER_TEST")
	if name == "" {
		name = "platform"
	}
	return LoadTarget(name)
}

// binary returns the path of the server and builds it unless the target's variable is set.
func (t Target) binary() (string, error) {
	if path := os.Getenv(t.Server); path != "" {
		return path, nil
	}
	if t.Build == "" {
		return "", fmt.Errorf("target %s: set %s to the path of its server", t.Name, t.Server)
	}
	return Build(t.Build)
}

// environment returns the environment of the server: that of this process without any
// server's variables, so that a developer's settings do not leak into a test, plus the
func (t Target) environment(extra map[string]string, replace *strings.Replacer) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "PLATFORM_") || strings.HasPrefix(kv, t.EnvPrefix)
	})
	all := maps.Clone(t.Env)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, extra)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		env = append(env, t.EnvPrefix+key+"="+replace.Replace(all[key]))
	}
	return env
}
