package invoker

import "slices"

// completions are the completion ids that commands of a journal have used. SDKs
// count them up, so that they mostly are one span.
type completions struct{ spans []span }

// span is the ids from first to last, both included.
type span struct{ first, last uint32 }

// add notes an id. It reports false for one that was used before.
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
	i, _ := slices.BinarySearchFunc(c.spans, id, func(s span, id uint32) int {
		if s.last < id {
			return -1
		}
		return 1
	})
	// The first span that does not end before the id.
	if i < n && c.spans[i].first <= id {
		return false
	}
	c.spans = slices.Insert(c.spans, i, span{id, id})
	c.merge(i)
	return true
}

// merge joins a span with its neighbours if there is nothing in between.
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
