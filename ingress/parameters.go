package ingress

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"platform/internal/suggest"
	"platform/internal/target"
	"platform/internal/units"
	"platform/partition/machine"
)

// parameters are the query parameters that the ingress interprets.
var parameters = []string{"delay", "limit-key"}

// readQuery reads the parameters from the query and the equivalent headers. The handler gets the
// whole query in a header and may have parameters of its own, including malformed ones; only what
// can hardly be one of them is rejected, see misspelled.
func readQuery(r *http.Request, t *parsedTarget, inv *machine.Invoke) error {
	var query url.Values
	if r.URL.RawQuery != "" {
		var err error
		if query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
			if name := malformed(r.URL.RawQuery, parameters...); name != "" {
				return badRequest("bad %s: the query cannot be decoded: %v", name, err)
			}
		}
	}
	for _, name := range parameters {
		if values := query[name]; len(values) > 1 {
			return badRequest("bad %s: the query parameter is given %d times", name, len(values))
		}
	}
	for name, values := range query {
		if meant := misspelled(name, values[0], t.oneWay); meant != "" {
			return badRequest("unknown query parameter '%s'; did you mean '%s'?", name, meant)
		}
	}
	if err := readLimitKey(r.Header, query, inv); err != nil {
		return err
	}
	if err := readPriority(r.Header, inv); err != nil {
		return err
	}
	if !query.Has("delay") {
		return nil
	}
	if !t.oneWay {
		return badRequest("bad delay: only sends can be delayed, a call waits for the result")
	}
	delay, err := units.ParseDuration(query.Get("delay"))
	if err != nil {
		return badRequest("bad delay: %v; examples are 10s, 1h 30m and PT90S", err)
	}
	inv.Delay = delay.Milliseconds()
	return nil
}

// misspelled returns the parameter of the server that a query parameter is another spelling of, if it is
// one. Handlers have parameters such as "key", "limit" and "relay", so a similar name is not enough: it
// has to have the same letters, or, where a delay is expected, a duration as its value. A send without
// its delay would run immediately.
func misspelled(name, value string, oneWay bool) string {
	letters := strings.NewReplacer("-", "", "_", "")
	for _, p := range parameters {
		if name != p && strings.EqualFold(letters.Replace(name), letters.Replace(p)) {
			return p
		}
	}
	if !oneWay || name == "delay" || suggest.Nearest(name, []string{"delay"}) == "" {
		return ""
	}
	if d, err := units.ParseDuration(value); err != nil || d == 0 {
		return ""
	}
	return "delay"
}

// malformed returns the first of the named parameters that a query has in a form that the decoder
// skips: a send without its delay would run immediately.
func malformed(query string, names ...string) string {
	for part := range strings.SplitSeq(query, "&") {
		if _, err := url.ParseQuery(part); err == nil {
			continue
		}
		for piece := range strings.SplitSeq(part, ";") {
			name, _, _ := strings.Cut(piece, "=")
			if slices.Contains(names, name) {
				return name
			}
		}
	}
	return ""
}

func readIdempotencyKey(h http.Header, inv *machine.Invoke) error {
	key, has := first(h["Idempotency-Key"])
	switch {
	case !has:
		return nil
	case inv.Target.Type == target.WorkflowRun:
		return badRequest("bad idempotency key: the run of a workflow cannot have one, since its key already makes it run once")
	case !isASCII(key):
		return badRequest("bad header: the value of 'idempotency-key' has characters outside ASCII")
	case key == "":
		// Every caller with an empty key would get the result of the first one.
		return badRequest("bad header: 'idempotency-key' is empty; give it a value that identifies this request, or leave it out")
	case len(h["Idempotency-Key"]) > 1:
		return badRequest("bad header: 'idempotency-key' is given %d times", len(h["Idempotency-Key"]))
	}
	inv.IdempotencyKey = &key
	return nil
}

func first(values []string) (string, bool) {
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}
