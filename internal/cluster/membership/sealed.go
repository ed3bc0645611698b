package membership

import (
	"slices"
	"time"

	"platform/internal/nodetls"
)

// An encrypted packet begins with sealedVersion and the identities of receiver and sender.
const (
	sealedVersion     = 2
	sealedHeaderBytes = 1 + 16 + 16
	// sealedOverhead is the nonce and the tag.
	sealedOverhead = 12 + 16
	// sealingMemory is how long packets to a node are encrypted after an encrypted one from it has
	// arrived. Nodes that require encryption always encrypt; others only in response.
	sealingMemory = 10 * time.Second
)

// encode returns a packet for a node. While not all nodes have a key, only those are sent
// encrypted packets that send them.
func (t *transport) encode(target identity, payload []byte) []byte {
	if !t.seals(target) {
		return encodePacket(target, payload)
	}
	header := make([]byte, 0, sealedHeaderBytes+sealedOverhead+len(payload))
	header = append(header, sealedVersion)
	header = append(header, target[:]...)
	header = append(header, t.self.target[:]...)
	return t.security.SealPacket(header, payload)
}

func (t *transport) seals(target identity) bool {
	switch {
	case !t.security.SealsPackets():
		return false
	case t.security.Mode() == nodetls.Require:
		return true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return time.Since(t.sealing[target]) < sealingMemory
}

// decode returns the payload of a packet; ok is false unless it is addressed to this node and
// encrypted, if this node requires it.
func (t *transport) decode(b []byte) (payload []byte, ok bool) {
	if len(b) == 0 || b[0] != sealedVersion {
		if t.security.SealsPackets() && t.security.Mode() == nodetls.Require {
			return nil, false
		}
		return decodePacket(t.self.target, b)
	}
	if !t.security.SealsPackets() || len(b) <= sealedHeaderBytes || identity(b[1:17]) != t.self.target {
		return nil, false
	}
	if payload, ok = t.security.OpenPacket(b[:sealedHeaderBytes], b[sealedHeaderBytes:]); !ok {
		return nil, false
	}
	sender := identity(b[17:sealedHeaderBytes])
	if slices.ContainsFunc(t.removed(), func(r Removed) bool { return identityOf(r.Name, r.Incarnation) == sender }) {
		return nil, false
	}
	t.noteSealing(sender)
	return payload, true
}

func (t *transport) noteSealing(sender identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.endpoints[sender]; known {
		t.sealing[sender] = time.Now()
	}
}
