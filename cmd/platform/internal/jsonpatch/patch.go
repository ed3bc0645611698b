package jsonpatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`
}

// Apply changes a document by a patch: an array of operations, or an object that
// is merged into it (RFC 7396).
func Apply(document, patch []byte) ([]byte, error) {
	doc, err := decodeNumbers(document)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.TrimSpace(string(patch)), "{") {
		merge, err := decodeNumbers(patch)
		if err != nil {
			return nil, err
		}
		return json.MarshalIndent(merged(doc, merge), "", "  ")
	}
	var operations []operation
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, fmt.Errorf("a patch is an array of operations or an object: %w", err)
	}
	for i, op := range operations {
		if doc, err = op.apply(doc); err != nil {
			return nil, fmt.Errorf("operation %d (%s): %w", i+1, op.Op, err)
		}
	}
	return json.MarshalIndent(doc, "", "  ")
}

// decodeNumbers decodes JSON without rounding numbers.
func decodeNumbers(raw []byte) (v any, err error) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return v, nil
}

func merged(doc, patch any) any {
	members, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	target, isObject := doc.(map[string]any)
	if !isObject {
		target = map[string]any{}
	}
	for name, value := range members {
		if value == nil {
			delete(target, name)
		} else {
			target[name] = merged(target[name], value)
		}
	}
	return target
}

func (o operation) apply(doc any) (any, error) {
	if o.Path == nil {
		return nil, errors.New("path is missing")
	}
	switch o.Op {
	case "add", "replace", "test":
		if o.Value == nil {
			return nil, errors.New("value is missing")
		}
		value, err := decodeNumbers(o.Value)
		if err != nil {
			return nil, err
		}
		return o.put(doc, value)
	case "remove":
		doc, _, err := removed(doc, *o.Path)
		return doc, err
	case "move", "copy":
		return o.take(doc)
	}
	return nil, fmt.Errorf("there is no operation %q", o.Op)
}

func (o operation) put(doc, value any) (any, error) {
	switch o.Op {
	case "test":
		found, err := lookUp(doc, *o.Path)
		if err == nil && !reflect.DeepEqual(found, value) {
			err = fmt.Errorf("%s has another value", *o.Path)
		}
		return doc, err
	case "replace":
		if _, err := lookUp(doc, *o.Path); err != nil {
			return nil, err
		}
		if *o.Path == "" {
			return value, nil
		}
		var err error
		if doc, _, err = removed(doc, *o.Path); err != nil {
			return nil, err
		}
	}
	return added(doc, *o.Path, value)
}

func (o operation) take(doc any) (any, error) {
	if o.From == nil {
		return nil, errors.New("from is missing")
	}
	value, err := lookUp(doc, *o.From)
	if err != nil {
		return nil, err
	}
	if o.Op == "move" {
		if doc, _, err = removed(doc, *o.From); err != nil {
			return nil, err
		}
	}
	return added(doc, *o.Path, value)
}

// steps are the parts of a JSON pointer.
func steps(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("the path %q does not begin with /", pointer)
	}
	parts := strings.Split(pointer[1:], "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

func lookUp(doc any, pointer string) (any, error) {
	parts, err := steps(pointer)
	for _, part := range parts {
		switch container := doc.(type) {
		case map[string]any:
			value, there := container[part]
			if !there {
				return nil, fmt.Errorf("there is no %s", pointer)
			}
			doc = value
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(container) {
				return nil, fmt.Errorf("there is no %s", pointer)
			}
			doc = container[i]
		default:
			return nil, fmt.Errorf("there is no %s", pointer)
		}
	}
	return doc, err
}

func added(doc any, pointer string, value any) (any, error) {
	return changed(doc, pointer, func(container any, last string) (any, error) {
		switch c := container.(type) {
		case map[string]any:
			c[last] = value
			return c, nil
		case []any:
			i := len(c)
			if last != "-" {
				var err error
				if i, err = strconv.Atoi(last); err != nil || i < 0 || i > len(c) {
					return nil, fmt.Errorf("there is no place %s", pointer)
				}
			}
			return slices.Insert(c, i, value), nil
		}
		return nil, fmt.Errorf("there is no place %s", pointer)
	}, value)
}

func removed(doc any, pointer string) (any, any, error) {
	value, err := lookUp(doc, pointer)
	if err != nil {
		return nil, nil, err
	}
	doc, err = changed(doc, pointer, func(container any, last string) (any, error) {
		switch c := container.(type) {
		case map[string]any:
			delete(c, last)
			return c, nil
		case []any:
			i, err := strconv.Atoi(last)
			return slices.Delete(c, i, i+1), err
		}
		return container, nil
	}, nil)
	return doc, value, err
}

// changed changes what holds the last part of a pointer; the whole document becomes
// whole if that is what the pointer means.
func changed(doc any, pointer string, change func(container any, last string) (any, error), whole any) (any, error) {
	parts, err := steps(pointer)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return whole, nil
	}
	if len(parts) == 1 {
		return change(doc, parts[0])
	}
	rest := "/" + strings.Join(escaped(parts[1:]), "/")
	inner, err := lookUp(doc, "/"+escaped(parts[:1])[0])
	if err != nil {
		return nil, err
	}
	if inner, err = changed(inner, rest, change, nil); err != nil {
		return nil, err
	}
	switch c := doc.(type) {
	case map[string]any:
		c[parts[0]] = inner
	case []any:
		i, _ := strconv.Atoi(parts[0]) // lookUp has found it
		c[i] = inner
	}
	return doc, nil
}

func escaped(parts []string) []string {
	out := make([]string, len(parts))
	for i, part := range parts {
		out[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1")
	}
	return out
}
