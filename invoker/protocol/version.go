package protocol

import (
	"errors"
	"fmt"
)

// Version is a version of the service protocol.
type Version uint8

// The versions that the server supports; V7 only if enabled.
const (
	V5 Version = 5
	V6 Version = 6
	V7 Version = 7
)

// Range is an inclusive range of versions.
type Range struct{ Min, Max int32 }

// ServerRange returns the versions that this server supports.
func ServerRange(enableV7 bool) Range {
	if enableV7 {
		return Range{int32(V5), int32(V7)}
	}
	return Range{int32(V5), int32(V6)}
}

// Contains reports whether v is in r.
func (r Range) Contains(v Version) bool { return int32(v) >= r.Min && int32(v) <= r.Max }

// String returns the range as text, such as "5 to 6".
func (r Range) String() string {
	if r.Min == r.Max {
		return fmt.Sprint(r.Min)
	}
	return fmt.Sprintf("%d to %d", r.Min, r.Max)
}

// errNoVersion means that two ranges do not intersect.
var errNoVersion = errors.New("no common service protocol version")

// Choose returns the newest version that both sides support.
func Choose(server, deployment Range) (Version, error) {
	v := min(server.Max, deployment.Max)
	if v < max(server.Min, deployment.Min) {
		return 0, fmt.Errorf("%w: the endpoint supports %s, the server %s", errNoVersion, deployment, server)
	}
	return Version(v), nil
}

var contentTypes = [...]string{
	V5: "application/vnd.restate.invocation.v5",
	V6: "application/vnd.restate.invocation.v6",
	V7: "application/vnd.restate.invocation.v7",
}

// ContentType returns the media type of requests and responses. Endpoints compare it
// verbatim.
func (v Version) ContentType() string { return contentTypes[v] }
