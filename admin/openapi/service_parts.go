package openapi

import (
	"encoding/json"
	"strings"
)

// Parts that the documents of all services share.

var ingressParameters = Object{
	"key": Object{
		"name": "key", "in": "path", "required": true, "schema": Object{"type": "string"},
		"description": "Key of the object, or id of the workflow.",
	},
	"delay": Object{
		"name": "delay", "in": "query", "schema": Object{"type": "string"}, "examples": Object{
			"seconds": Object{"value": "10s"}, "mixed": Object{"value": "1h 30m"}, "iso": Object{"value": "PT90S"},
		},
		"description": "How long to wait before it starts.",
	},
	"idempotencyKeyHeader": Object{
		"name": "idempotency-key", "in": "header", "schema": Object{"type": "string"},
		"description": "Requests of the same caller with the same key are the same invocation. Callers without credentials share their keys.",
	},
	"idempotencyKeyPath": Object{
		"name": "idempotencyKey", "in": "path", "required": true, "schema": Object{"type": "string"},
		"description": "The idempotency key that the caller made the invocation with.",
	},
}

var resultHeaders = Object{
	"x-platform-id":       Object{"description": "Id of the invocation.", "schema": Object{"type": "string"}},
	"idempotency-expires": Object{"description": "When the result expires. Absent if it does not.", "schema": Object{"type": "string", "format": "date-time"}},
}

var ingressResponses = Object{
	"Send": Object{"description": "The invocation was accepted; PreviouslyAccepted if an earlier request had created it.", "content": jsonContent(Object{
		"type": "object", "required": []string{"invocationId", "status"}, "properties": Object{
			"invocationId":  Object{"type": "string"},
			"status":        Object{"type": "string", "enum": []string{"Accepted", "PreviouslyAccepted"}},
			"executionTime": Object{"type": "string", "format": "date-time", "description": "When it starts, if it was delayed."},
		},
	})},
	"GenericError":            Object{"description": "The server or the invocation failed.", "content": jsonContent(refer("schemas", "PlatformError"))},
	"InvocationNotFoundError": Object{"description": "There is no such invocation.", "content": jsonContent(refer("schemas", "PlatformError"))},
	"InvocationNotReadyError": Object{"description": "The invocation has not completed yet.", "content": jsonContent(refer("schemas", "PlatformError"))},
}

var ingressError = Object{
	"type": "object", "title": "PlatformError", "required": []string{"message"}, "properties": Object{
		"code":     Object{"type": "integer", "description": "The status again, or the code of the handler's terminal error."},
		"message":  Object{"type": "string"},
		"source":   Object{"type": "string", "enum": []string{"ingress", "invocation"}, "description": "Whose error it is."},
		"metadata": Object{"type": "object", "additionalProperties": Object{"type": "string"}},
	},
}

// media describes a body; its JSON schema becomes a component with the given name.
func (d *serviceDocument) media(name string, schema json.RawMessage) Object {
	var decoded any
	if len(schema) == 0 || json.Unmarshal(schema, &decoded) != nil {
		return Object{}
	}
	if root, ok := decoded.(Object); ok {
		delete(root, "$schema")
		if _, own := root["$id"]; !own {
			relocate(root, "#/components/schemas/"+name)
		}
	}
	d.schemas[name] = decoded
	return Object{"schema": refer("schemas", name)}
}

// relocate makes references within a schema relative to its new location.
func relocate(value any, to string) {
	switch v := value.(type) {
	case Object:
		if ref, ok := v["$ref"].(string); ok && (ref == "#" || strings.HasPrefix(ref, "#/")) {
			v["$ref"] = to + ref[1:]
		}
		for key, part := range v {
			switch key {
			case "const", "enum", "default", "examples": // values, not schemas
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas": // the keys are names
				if named, ok := part.(Object); ok {
					for _, schema := range named {
						relocate(schema, to)
					}
				}
			default:
				relocate(part, to)
			}
		}
	case []any:
		for _, part := range v {
			relocate(part, to)
		}
	}
}
