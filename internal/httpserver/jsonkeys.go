package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// RepeatedKey returns the first key that an object in a JSON value has twice, with its path, such
// as filter.service or rules[2].pattern. Go's decoder silently uses the last
// one, other readers of the same body the first, so what is approved might not be what takes effect.
// With fold, keys that differ only in case are the same, as they are for Go's decoder if it decodes
// into a struct. A value that is not valid JSON is examined up to the first error.
func RepeatedKey(body []byte, fold bool) (path string, repeated bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var open []container
	for {
		token, err := dec.Token()
		if err != nil {
			return "", false
		}
		if len(open) > 0 && open[len(open)-1].expectsKey() {
			if name, ok := token.(string); ok {
				if open[len(open)-1].add(name, fold) {
					return pathOf(open), true
				}
				continue
			}
		}
		switch token {
		case json.Delim('{'):
			open = append(open, container{keys: map[string]bool{}})
			continue
		case json.Delim('['):
			open = append(open, container{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			open[len(open)-1].next()
		}
	}
}

// container is an object or array that is being read.
type container struct {
	keys  map[string]bool // of an object so far; nil for an array
	key   string          // whose value comes next
	inKey bool            // key is set
	index int             // of the element of an array that comes next
}

func (c *container) expectsKey() bool { return c.keys != nil && !c.inKey }

// add sets the key, and returns true if the object has it already.
func (c *container) add(name string, fold bool) bool {
	same := name
	if fold {
		same = strings.ToLower(strings.ToUpper(name)) // also joins ſ with s, as the decoder does
	}
	repeated := c.keys[same]
	c.keys[same], c.key, c.inKey = true, name, true
	return repeated
}

// next is called after a value.
func (c *container) next() {
	c.inKey = false
	c.index++
}

// pathOf returns the path of the value that comes next.
func pathOf(open []container) string {
	var path strings.Builder
	for i := range open {
		switch c := &open[i]; {
		case c.keys == nil:
			fmt.Fprintf(&path, "[%d]", c.index)
		case path.Len() > 0:
			path.WriteString("." + c.key)
		default:
			path.WriteString(c.key)
		}
	}
	return path.String()
}
