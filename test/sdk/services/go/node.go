package main

import (
	"slices"

	restate "github.com/restatedev/sdk-go"

	"platform/test/sdk/contract"
)

// node is something to await: a future, or a combination of nodes.
type node struct {
	kind string // of a combination
	of   []*node

	future restate.Future // of a leaf
	result func() contract.Outcome
	done   *contract.Outcome
	ended  []int // parts of a combination in the order they ended
}

func leaf(f restate.Future, result func() contract.Outcome) *node {
	return &node{future: f, result: result}
}

// take keeps the result of a leaf that has ended.
func (n *node) take() {
	o := n.result()
	n.done = &o
}

// open appends the leaves that may still matter.
func (n *node) open(to []*node) []*node {
	if n.done != nil {
		return to
	}
	if n.future != nil {
		return append(to, n)
	}
	for _, part := range n.of {
		to = part.open(to)
	}
	return to
}

// decide tells whether the node is decided, and what it came to.
func (n *node) decide() (contract.Outcome, bool) {
	if n.done != nil {
		return *n.done, true
	}
	if n.future != nil {
		return contract.Outcome{}, false
	}
	for i, part := range n.of {
		if slices.Contains(n.ended, i) {
			continue
		}
		if _, ok := part.decide(); ok {
			n.ended = append(n.ended, i)
		}
	}
	o, ok := n.combine()
	if ok {
		n.done = &o
	}
	return o, ok
}

// combine applies the rule of the combination to the parts that have ended.
func (n *node) combine() (contract.Outcome, bool) {
	for _, i := range n.ended {
		o, _ := n.of[i].decide()
		switch {
		case n.kind == "first", n.kind == "any" && o.Code == 0:
			return contract.Outcome{Index: i, Of: []contract.Outcome{o}}, true
		case n.kind == "all" && o.Code != 0:
			return contract.Outcome{Code: o.Code, Message: o.Message}, true
		}
	}
	if len(n.ended) < len(n.of) {
		return contract.Outcome{}, false
	}
	all := contract.Outcome{}
	for _, part := range n.of {
		o, _ := part.decide()
		all.Of = append(all.Of, o)
	}
	if n.kind == "any" {
		all.Code, all.Message = 500, "all failed"
	}
	return all, true
}
