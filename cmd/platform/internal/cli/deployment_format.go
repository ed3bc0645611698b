package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// headerPairs is pairs without the values of headers that carry secrets; --json
// shows them.
func headerPairs(headers map[string]string) string {
	shown := maps.Clone(headers)
	for name := range shown {
		lower := strings.ToLower(name)
		if slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) }) {
			shown[name] = "(hidden)"
		}
	}
	return command.Pairs(shown)
}

var secretWords = []string{"auth", "cookie", "key", "password", "secret", "token"}

// factorText is a factor as the server prints it: 2.0.
func factorText(f float64) json.Number {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return json.Number(text)
}

// transport is the type of a deployment's connection.
func transport(d client.Deployment) string {
	if d.ARN != "" {
		return "Function"
	}
	return d.HTTPVersion
}

func transportFields(p *term.Printer, d client.Deployment) []term.Field {
	style := map[string]string{"BidiStream": "bidirectional streaming", "RequestResponse": "request and response"}[d.ProtocolType]
	return []term.Field{
		{Name: "Address", Value: term.Clean(d.Address())},
		{Name: "Transport", Value: transport(d)},
		{Name: "Protocol style", Value: style},
		{Name: "Protocol versions", Value: versions(d)},
		{Name: "SDK", Value: term.Clean(d.SDKVersion)},
		{Name: "Registered", Value: p.Time(d.CreatedAt)},
		{Name: "Headers", Value: headerPairs(d.AdditionalHeaders)},
	}
}

func versions(d client.Deployment) string {
	switch {
	case d.MaxProtocolVersion == 0:
		return ""
	case d.MinProtocolVersion == d.MaxProtocolVersion:
		return fmt.Sprint(d.MaxProtocolVersion)
	}
	return fmt.Sprintf("%d to %d", d.MinProtocolVersion, d.MaxProtocolVersion)
}
