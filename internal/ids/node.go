package ids

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Node is the id of a node in its cluster: nodes are numbered from 1 in the order in which they
// join. Its text form, also in JSON, is N1. The zero value identifies no node.
type Node uint32

const nodePrefix = "N"

// String is the text form, such as N1.
func (n Node) String() string { return nodePrefix + strconv.FormatUint(uint64(n), 10) }

// MarshalText returns the text form.
func (n Node) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText parses the forms of ParseNode.
func (n *Node) UnmarshalText(text []byte) (err error) {
	*n, err = ParseNode(string(text))
	return err
}

// UnmarshalJSON parses the forms of ParseNode, and JSON numbers, which servers sent before ids
// of nodes had a text form.
func (n *Node) UnmarshalJSON(b []byte) error {
	switch {
	case bytes.Equal(b, []byte("null")):
		return nil
	case len(b) > 0 && b[0] == '"':
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return fmt.Errorf("id of a node: %w", err)
		}
		return n.UnmarshalText([]byte(text))
	}
	return n.UnmarshalText(b)
}

// ParseNode parses the id of a node: N1 or 1.
func ParseNode(text string) (Node, error) {
	number := strings.TrimPrefix(text, nodePrefix)
	id, err := strconv.ParseUint(number, 10, 32)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%w: the id of a node has the form N1, not %q", errFormat, text)
	}
	return Node(id), nil
}
