package openapi

import "platform/admin/rest"

// QueryParameter describes a query parameter.
func QueryParameter(name, meaning string, schema Object) Object {
	return Object{"name": name, "in": "query", "description": meaning, "schema": schema}
}

// Limit describes the parameter that rest.Limit parses, for pages of what is named.
func Limit(what string) Object {
	return QueryParameter("limit", "Maximum number of "+what+" in a page.", Object{"type": "integer", "minimum": 1, "maximum": rest.MaxLimit, "default": rest.DefaultLimit})
}

// Cursor describes the parameter with the cursor of a page.
var Cursor = QueryParameter("cursor", "next_cursor of the page before.", Object{"type": "string"})

// PauseReason describes the parameter with the reason of a pause, see rest.PauseRequestOf.
var PauseReason = QueryParameter("reason", "Why it is paused, for other operators: one line of up to 512 bytes. Stored with the address of the client.", Object{"type": "string", "maxLength": rest.MaxReason})
