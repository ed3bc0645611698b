package httpserver

import (
	"net/http"
	"strconv"
	"strings"
)

// AcceptsGzip reports whether the response to a request with these headers may be encoded with gzip
// (RFC 9110, section 12.5.3).
func AcceptsGzip(h http.Header) bool {
	wildcard := false
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, parameter, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return !refused(parameter)
		case "*":
			wildcard = !refused(parameter)
		}
	}
	return wildcard
}

// refused reports whether the parameter of a coding is a weight of 0.
func refused(parameter string) bool {
	name, value, _ := strings.Cut(parameter, "=")
	if !strings.EqualFold(strings.TrimSpace(name), "q") {
		return false
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && weight <= 0
}
