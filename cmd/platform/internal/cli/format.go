package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// pairs prints a map, one name per line.
func pairs(table map[string]string) string {
	lines := make([]string, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		lines = append(lines, term.Clean(name)+"="+term.Clean(table[name]))
	}
	return strings.Join(lines, "\n")
}

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
	return pairs(shown)
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

// roughSize is a size in bytes with two or three digits.
func roughSize(n int64) string {
	size, unit := float64(n), 0
	for ; size >= 1024 && unit < 4; unit++ {
		size /= 1024
	}
	digits := 0
	if unit > 0 && size < 10 {
		digits = 1
	}
	return strconv.FormatFloat(size, 'f', digits, 64) + " " + [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}
