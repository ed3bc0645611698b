package backend

import (
	"context"

	"platform/admin"
	"platform/partition/listing"
)

const (
	// awakeableChunk is how many invocations are read at a time: many wait for something else.
	awakeableChunk = 1000
	// awakeableReads bounds the reads of one page.
	awakeableReads = 20
)

// Awakeables implements admin.Invocations. The last change of status, by which the invocations are
// sorted, is the suspension of those that are suspended.
func (c *catalog) Awakeables(ctx context.Context, q admin.Query) (page admin.AwakeablePage, err error) {
	most := q.Limit
	q.Filter.Statuses = []listing.Status{listing.Suspended, listing.Running}
	q.ByModified, q.OldestFirst, q.Limit = true, true, awakeableChunk
	for range awakeableReads {
		read, err := c.List(ctx, q)
		if err != nil {
			return page, err
		}
		list, fitting, err := firstAwakeables(read.Invocations, most-len(page.Awakeables))
		if err != nil {
			return page, err
		}
		if fitting == 0 && len(page.Awakeables) > 0 {
			return page, nil
		}
		if fitting = max(fitting, 1); fitting < len(read.Invocations) {
			q.Limit = fitting // reading these again returns the cursor of the place after them
			continue
		}
		page.Awakeables = append(page.Awakeables, list...)
		page.Next, q.Cursor = read.Next, read.Next
		if read.Next == "" || len(page.Awakeables) >= most {
			break
		}
	}
	return page, nil
}

// firstAwakeables returns the awakeables of all invocations, and of how many from the start they are
// not more than most.
func firstAwakeables(invocations []*admin.Invocation, most int) (all []admin.Awakeable, fitting int, err error) {
	for n, inv := range invocations {
		list, err := admin.AwakeablesOf(inv)
		if err != nil {
			return nil, 0, err
		}
		if all = append(all, list...); len(all) <= most {
			fitting = n + 1
		}
	}
	return all, fitting, nil
}
