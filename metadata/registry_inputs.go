package metadata

import (
	"fmt"
	"strings"
)

// InputError describes why a handler does not accept a request body. The sender of the body can
// fix it.
type InputError struct{ Reason string }

// Error returns the reason with the prefix of input validation.
func (e *InputError) Error() string { return "input validation error: " + e.Reason }

const (
	noContent  = "none"
	anyContent = "*/*"
)

// Check checks whether a handler with these rules accepts a body with a content type.
// hasContentType distinguishes an absent header from an empty one. The error is an
// *InputError.
//
// The rules are alternatives: no body, unless input is required; or a value of the
// announced content type, which must not be empty if there is a JSON schema, since no JSON
// text is empty. Values are not validated against the schema.
func (r *InputRules) Check(contentType string, hasContentType bool, body []byte) error {
	if r.Any {
		return nil
	}
	if !r.Required && len(body) == 0 && !hasContentType {
		return nil
	}
	pattern := r.pattern()
	switch {
	case pattern == "" && len(body) > 0:
		return &InputError{"expected an empty body"}
	case pattern == "":
		return &InputError{fmt.Sprintf("expected no content-type, got '%s'", contentType)}
	case !hasContentType && len(body) == 0:
		return &InputError{fmt.Sprintf("a body with content-type '%s' is required", pattern)}
	case !hasContentType:
		return &InputError{fmt.Sprintf("the body lacks a content-type, expected '%s'", pattern)}
	case !matches(pattern, contentType):
		return &InputError{fmt.Sprintf("Content-type '%s' does not match '%s'", contentType, pattern)}
	case len(body) == 0 && r.nonEmpty():
		return &InputError{fmt.Sprintf("the body is empty, expected a value of content-type '%s'", pattern)}
	}
	return nil
}

// Description describes what Check accepts: "none", "value of content-type
// application/json", or both as a list.
func (r *InputRules) Description() string {
	pattern := r.pattern()
	if r.Any {
		pattern = anyContent
	}
	switch {
	case pattern == "":
		return noContent
	case r.Required:
		return valueOf(pattern)
	}
	return fmt.Sprintf("one of [%q, %q]", noContent, valueOf(pattern))
}

// pattern is the content type to match, empty if there must be no body. Required input
// without a type may have any.
func (r *InputRules) pattern() string {
	if r.ContentType == "" && r.Required {
		return anyContent
	}
	return r.ContentType
}

func (r *InputRules) nonEmpty() bool {
	return len(r.JSONSchema) > 0 || (r.Required && r.ContentType == "")
}

// ResponseContentType returns the content type for a response body of that length; empty
// means to send none.
func (r *OutputRules) ResponseContentType(length int) string {
	if length == 0 && !r.SetContentTypeIfEmpty {
		return ""
	}
	return r.ContentType
}

// Description describes the handler's response: "none" or "value of content-type
// application/json".
func (r *OutputRules) Description() string {
	if r.ContentType == "" {
		return noContent
	}
	return valueOf(r.ContentType)
}

func valueOf(contentType string) string { return "value of content-type " + contentType }

// ValidContentType reports whether a handler may announce this content type: type/subtype,
// type/* or */*.
func ValidContentType(pattern string) bool {
	kind, sub, ok := strings.Cut(mediaType(pattern), "/")
	if !ok || kind == "" || sub == "" || strings.ContainsAny(mediaType(pattern), " \t,") || strings.Contains(sub, "/") {
		return false
	}
	return kind != "*" || sub == "*"
}

// matches compares a request's content type, without its parameters, with an announced one,
// ignoring case.
func matches(pattern, contentType string) bool {
	pattern, contentType = mediaType(pattern), mediaType(contentType)
	if pattern == anyContent {
		return contentType != ""
	}
	if kind, ok := strings.CutSuffix(pattern, "/*"); ok {
		got, _, _ := strings.Cut(contentType, "/")
		return strings.EqualFold(kind, got)
	}
	return strings.EqualFold(pattern, contentType)
}

// mediaType returns a content type without parameters.
func mediaType(contentType string) string {
	contentType, _, _ = strings.Cut(contentType, ";")
	return strings.TrimSpace(contentType)
}
