package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"platform/admin/rest"
	"platform/flowcontrol"
)

// ruleChange is a rule in a request. Fields that are not given are reset.
type ruleChange struct {
	Pattern      string        `json:"pattern"`
	Limits       limitsView    `json:"limits"`
	Description  string        `json:"description"`
	Disabled     bool          `json:"disabled"`
	Precondition *precondition `json:"precondition"`
}

// limitsView contains limits in requests and responses; nil means unlimited.
type limitsView struct {
	Concurrency *uint32 `json:"concurrency,omitempty"`
	Rate        *string `json:"rate,omitempty"`
	QueueLimit  *uint64 `json:"queue_limit,omitempty"`
}

// precondition is the expected state of a rule before a change.
type precondition struct {
	Type    string  `json:"type"`
	Version *uint32 `json:"version"`
}

// ruleRemoval is an element of a bulk deletion.
type ruleRemoval struct {
	Pattern         string  `json:"pattern"`
	ExpectedVersion *uint32 `json:"expected_version"`
}

// ruleView is a rule in responses.
type ruleView struct {
	Pattern      string     `json:"pattern"`
	Limits       limitsView `json:"limits"`
	Description  string     `json:"description,omitempty"`
	Disabled     bool       `json:"disabled"`
	Version      uint32     `json:"version"`
	LastModified int64      `json:"last_modified_millis_since_epoch"`
}

// ruleBookView is the rule book in responses.
type ruleBookView struct {
	Version uint32     `json:"version"`
	Rules   []ruleView `json:"rules"`
}

func viewRule(r *flowcontrol.Rule) ruleView {
	v := ruleView{
		Pattern: r.Pattern.String(), Description: r.Description, Disabled: r.Disabled, Version: r.Version, LastModified: r.ModifiedAt,
		Limits: limitsView{QueueLimit: r.Limits.QueueLimit},
	}
	if r.Limits.Concurrency != 0 {
		v.Limits.Concurrency = &r.Limits.Concurrency
	}
	if r.Limits.Rate != nil {
		text := r.Limits.Rate.String()
		v.Limits.Rate = &text
	}
	return v
}

// change validates a rule and converts it for the registry.
func (r *ruleChange) change() (c flowcontrol.Change, err error) {
	if c.Pattern, err = givenPattern(r.Pattern); err != nil {
		return c, err
	}
	if c.Limits, err = r.Limits.limits(); err != nil {
		return c, err
	}
	if c.Precondition, err = r.Precondition.given(); err != nil {
		return c, err
	}
	c.Description, c.Disabled = r.Description, r.Disabled
	if err := c.Check(); err != nil {
		return c, rest.Unprocessable("%v", err)
	}
	return c, nil
}

func (r *ruleRemoval) removal() (flowcontrol.Removal, error) {
	pattern, err := givenPattern(r.Pattern)
	if err != nil || r.ExpectedVersion == nil {
		return flowcontrol.Removal{Pattern: pattern}, err
	}
	expected := flowcontrol.Precondition{Kind: flowcontrol.Matches, Version: *r.ExpectedVersion}
	return flowcontrol.Removal{Pattern: pattern, Precondition: expected}, nil
}

func givenPattern(text string) (flowcontrol.Pattern, error) {
	if text == "" {
		return flowcontrol.Pattern{}, rest.Unprocessable("the field 'pattern' is missing; it is scope, scope/l1 or scope/l1/l2, with * for any")
	}
	pattern, err := flowcontrol.ParsePattern(text)
	if err != nil {
		return pattern, rest.Unprocessable("%v", err)
	}
	return pattern, nil
}

func (v *limitsView) limits() (flowcontrol.Limits, error) {
	l := flowcontrol.Limits{QueueLimit: v.QueueLimit}
	if v.Concurrency != nil {
		if l.Concurrency = *v.Concurrency; l.Concurrency == 0 {
			return l, rest.Unprocessable("the field 'limits.concurrency' must be 1 or more; leave it out for no limit")
		}
	}
	if v.Rate != nil {
		rate, err := flowcontrol.ParseRate(*v.Rate)
		if err != nil {
			return l, rest.Unprocessable("the field 'limits.rate' is invalid: %v", err)
		}
		l.Rate = &rate
	}
	return l, nil
}

// given converts the precondition; there is none if it is nil.
func (p *precondition) given() (expected flowcontrol.Precondition, err error) {
	if p == nil {
		return expected, nil
	}
	switch p.Type {
	case "none":
	case "does_not_exist":
		expected.Kind = flowcontrol.DoesNotExist
	case "matches":
		if p.Version == nil {
			return expected, rest.Unprocessable("the field 'precondition.version' is missing, which the type \"matches\" needs")
		}
		return flowcontrol.Precondition{Kind: flowcontrol.Matches, Version: *p.Version}, nil
	default:
		return expected, rest.Unprocessable("the field 'precondition.type' is '%s'; there are \"none\", \"matches\" and \"does_not_exist\"", p.Type)
	}
	if p.Version != nil {
		return expected, rest.Unprocessable("the field 'precondition.version' goes with the type \"matches\" only")
	}
	return expected, nil
}

// decodeEach decodes a JSON array and converts its elements. Errors contain the index of the
// element.
func decodeEach[Element, T any](body []byte, convert func(*Element) (T, error)) ([]T, error) {
	var elements []json.RawMessage
	if err := rest.DecodeJSON(body, &elements); err != nil {
		return nil, err
	}
	if elements == nil {
		return nil, rest.Unprocessable("the request body must be an array, not null")
	}
	list := make([]T, len(elements))
	for i, raw := range elements {
		var element Element
		err := decodeObject(raw, &element)
		if err == nil {
			list[i], err = convert(&element)
		}
		if f, ok := errors.AsType[*rest.Error](err); ok {
			return nil, &rest.Error{Status: f.Status, Code: f.Code, Message: fmt.Sprintf("element %d of the array: %s", i+1, f.Message)}
		}
	}
	return list, nil
}

// decodeObject decodes a JSON value, which must be an object.
func decodeObject(body []byte, into any) error {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] != '{' && json.Valid(trimmed) {
		return rest.Unprocessable("it must be an object")
	}
	return rest.DecodeJSON(body, into)
}
