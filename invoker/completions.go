package invoker

import "slices"

// completions is the set of completion IDs used by the commands of a journal. SDKs count
// up, so it is usually one span.
type completions struct{ spans []span }

// span is the IDs from first to last, both included.
type span struct{ first, last uint32 }

// add adds an ID. It returns false if it was already used.
func (c *completions) add(id uint32) bool {
	n := len(c.spans)
	if n > 0 && c.spans[n-1].last < id {
		if c.spans[n-1].last+1 == id {
			c.spans[n-1].last = id
		} else {
			c.spans = append(c.spans, span{id, id})
		}
		return true
	}
	i := c.search(id)
	if i < n && c.spans[i].first <= id {
		return false
	}
	c.spans = slices.Insert(c.spans, i, span{id, id})
	c.merge(i)
	return true
}

// has reports whether an ID was added.
func (c *completions) has(id uint32) bool {
	i := c.search(id)
	return i < len(c.spans) && c.spans[i].first <= id
}

// search returns the index of the first span that does not end before an ID.
func (c *completions) search(id uint32) int {
	i, _ := slices.BinarySearchFunc(c.spans, id, func(s span, id uint32) int {
		if s.last < id {
			return -1
		}
		return 1
	})
	return i
}

// merge joins a span with adjacent ones.
func (c *completions) merge(i int) {
	if i+1 < len(c.spans) && c.spans[i].last+1 == c.spans[i+1].first {
		c.spans[i].last = c.spans[i+1].last
		c.spans = slices.Delete(c.spans, i+1, i+2)
	}
	if i > 0 && c.spans[i-1].last+1 == c.spans[i].first {
		c.spans[i-1].last = c.spans[i].last
		c.spans = slices.Delete(c.spans, i, i+1)
	}
}
