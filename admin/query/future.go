package query

import (
	"encoding/json"

	"platform/partition/journal"
)

// combinators are the names of combinators in trees of futures.
var combinators = map[journal.Combinator]string{
	journal.CombineUnknown: "Unknown", journal.CombineFirstCompleted: "FirstCompleted", journal.CombineAllCompleted: "AllCompleted",
	journal.CombineFirstSucceededOrAllFailed: "FirstSucceededOrAllFailed",
	journal.CombineAllSucceededOrFirstFailed: "AllSucceededOrFirstFailed",
}

// futureJSON encodes a tree of futures: {"FirstCompleted":[{"Single":{"CompletionId":1}},…]}, or
// just the leaf if there is only one.
func futureJSON(f *journal.Future) value {
	if f == nil {
		return nil
	}
	return jsonText(futureTree(f))
}

func futureTree(f *journal.Future) any {
	var children []any
	single := func(kind string, v any) {
		children = append(children, map[string]any{"Single": map[string]any{kind: v}})
	}
	for _, c := range f.Completions {
		single("CompletionId", c)
	}
	for _, s := range f.Signals {
		single("SignalIndex", s)
	}
	for _, n := range f.Names {
		single("SignalName", n)
	}
	for i := range f.Nested {
		children = append(children, futureTree(&f.Nested[i]))
	}
	if len(children) == 1 && len(f.Nested) == 0 {
		return children[0]
	}
	return map[string]any{combinators[f.Combinator]: children}
}

func listJSON[T any](list []T) value {
	if list == nil {
		list = []T{}
	}
	return jsonText(list)
}

// jsonText encodes a value whose encoding cannot fail.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode " + err.Error()) // only types of this package are encoded
	}
	return string(b)
}
