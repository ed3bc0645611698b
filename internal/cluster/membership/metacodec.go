package membership

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"
	"google.golang.org/protobuf/encoding/protowire"
)

// errMetaTooLarge is returned when the description of a node exceeds the size limit of
// gossip messages.
var errMetaTooLarge = errors.New("node description is too large to gossip")

// The description of a member is a protobuf message with these fields, so that later
// versions can add fields.
const (
	fieldIncarnation protowire.Number = 1 + iota
	fieldAddress
	fieldClusterID
	fieldVersion
	fieldNodeID
	fieldDraining
	fieldStarted // milliseconds since 1970
)

// encodeMember encodes m without its name, which memberlist transmits separately.
func encodeMember(m Member) ([]byte, error) {
	b := appendString(nil, fieldIncarnation, m.Incarnation)
	b = appendString(b, fieldAddress, m.Address)
	b = appendString(b, fieldClusterID, m.ClusterID)
	b = appendString(b, fieldVersion, m.Version)
	b = appendNumber(b, fieldNodeID, uint64(m.NodeID))
	b = appendNumber(b, fieldDraining, protowire.EncodeBool(m.Draining))
	if !m.Started.IsZero() {
		b = appendNumber(b, fieldStarted, uint64(m.Started.UnixMilli()))
	}
	if len(b) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("%w: %d bytes of at most %d", errMetaTooLarge, len(b), memberlist.MetaMaxSize)
	}
	return b, nil
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// decodeMember decodes the output of encodeMember, possibly of another version.
func decodeMember(name string, b []byte) (Member, error) {
	m := Member{Name: name}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return Member{}, fmt.Errorf("decode description of node %q: %w", name, protowire.ParseError(n))
		}
		b = b[n:]
		if n = m.decodeField(field, kind, b); n < 0 {
			return Member{}, fmt.Errorf("decode field %d of node %q: %w", field, name, protowire.ParseError(n))
		}
		b = b[n:]
	}
	if m.Incarnation == "" || m.Address == "" {
		return Member{}, fmt.Errorf("description of node %q has no incarnation or address", name)
	}
	return m, nil
}

// decodeField decodes one value and returns its length, negative if malformed.
func (m *Member) decodeField(field protowire.Number, kind protowire.Type, b []byte) int {
	switch kind {
	case protowire.BytesType:
		v, n := protowire.ConsumeString(b)
		switch field {
		case fieldIncarnation:
			m.Incarnation = v
		case fieldAddress:
			m.Address = v
		case fieldClusterID:
			m.ClusterID = v
		case fieldVersion:
			m.Version = v
		}
		return n
	case protowire.VarintType:
		v, n := protowire.ConsumeVarint(b)
		switch field {
		case fieldNodeID:
			m.NodeID = uint32(v)
		case fieldDraining:
			m.Draining = protowire.DecodeBool(v)
		case fieldStarted:
			if v != 0 { // encodeMember omits a zero value
				m.Started = time.UnixMilli(int64(v))
			}
		}
		return n
	}
	return protowire.ConsumeFieldValue(field, kind, b)
}
