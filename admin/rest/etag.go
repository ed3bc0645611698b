package rest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/zeebo/xxh3"
)

// writeVersioned responds to a read with a JSON body and its entity tag, or with 304 if the client
// has that body already. Clients that poll thereby transfer and decode what has changed only. The
// tag is weak, because the same body can be sent compressed.
func writeVersioned(w http.ResponseWriter, r *http.Request, body []byte) {
	tag := fmt.Sprintf(`W/"%016x"`, xxh3.Hash(body))
	header := w.Header()
	header.Set("ETag", tag)
	// Responses may contain payloads, which no cache should keep; clients keep the tag themselves.
	header.Set("Cache-Control", "no-store")
	if hasTag(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // fails only if the client has closed the connection
}

// hasTag reports whether a list of entity tags contains tag, by weak comparison.
func hasTag(list, tag string) bool {
	for given := range strings.SplitSeq(list, ",") {
		given = strings.TrimSpace(given)
		if given == "*" || given != "" && strings.TrimPrefix(given, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
