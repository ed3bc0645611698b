package ids

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

// The unique parts of ids that follow from keys are hashes of those keys, joined with
// commas. A key may contain commas, too, so the first release gave the same id to
// different keys. A part that could be misread is therefore written behind a marker and
// with its length; all others are written as they are, so their ids did not change.

const (
	marker      = "\x00" // begins a part that contains a comma or a marker
	scopeMarker = "\x01" // begins a scope that could be taken for a service
)

// unambiguous reports whether a part can be joined as it is.
func unambiguous(part string) bool {
	return strings.IndexByte(part, ',') < 0 && !strings.HasPrefix(part, marker) && !strings.HasPrefix(part, scopeMarker)
}

func escape(part string) string {
	if unambiguous(part) {
		return part
	}
	return marker + strconv.Itoa(len(part)) + ":" + part
}

// Ambiguous reports whether the first release may have given the id of an idempotent
// request, or of a workflow's run without idempotency key, to others as well. Then the
// Legacy functions return another id.
func Ambiguous(scope, service, key, idempotencyKey string) bool {
	return !unambiguous(key) || !unambiguous(idempotencyKey) || !unambiguous(service) || scope != "" && scope == service && key == ""
}

// WorkflowUnique is the unique part of the id of a workflow's run; scope is empty
// for none.
func WorkflowUnique(scope, workflow, key string) [16]byte {
	return uniqueOf("wf", scope, escape(workflow), escape(key))
}

// IdempotentUnique is the unique part of the id of a request with an idempotency
// key; scope and objectKey are left out of the hash when empty.
func IdempotentUnique(scope, service, objectKey, handler, idempotencyKey string) [16]byte {
	// A scope and a service without keys are as many parts as a service and a key.
	if scope != "" && scope == service && objectKey == "" {
		scope = scopeMarker + scope
	}
	if objectKey != "" {
		objectKey = escape(objectKey)
	}
	return idempotentUnique(scope, escape(service), objectKey, escape(handler), escape(idempotencyKey))
}

func idempotentUnique(scope, service, objectKey, handler, idempotencyKey string) [16]byte {
	parts := make([]string, 0, 4)
	parts = append(parts, service)
	if objectKey != "" {
		parts = append(parts, objectKey)
	}
	return uniqueOf("ik", scope, append(parts, handler, idempotencyKey)...)
}

// privateUnique hashes each part with its length, so that no two lists of parts are hashed alike. The
// kind differs from those of uniqueOf, which never begin with "pk".
func privateUnique(parts ...string) [16]byte {
	text := []byte("pk")
	for _, part := range parts {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	return truncated(text)
}

func uniqueOf(kind, scope string, parts ...string) [16]byte {
	if scope != "" {
		parts = append([]string{scope}, parts...)
	}
	return truncated([]byte(kind + "," + strings.Join(parts, ",")))
}

func truncated(text []byte) (u [16]byte) {
	sum := sha256.Sum256(text)
	copy(u[:], sum[:])
	if u == [16]byte{} {
		u[15] = 1 // all zero means "none"
	}
	return u
}
