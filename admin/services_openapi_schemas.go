package admin

import (
	"encoding/json"
	"strings"
)

// Parts that the documents of all services share.

var ingressParameters = object{
	"key": object{
		"name": "key", "in": "path", "required": true, "schema": object{"type": "string"},
		"description": "Key of the object, or id of the workflow.",
	},
	"delay": object{
		"name": "delay", "in": "query", "schema": object{"type": "string"}, "examples": object{
			"seconds": object{"value": "10s"}, "mixed": object{"value": "1h 30m"}, "iso": object{"value": "PT90S"},
		},
		"description": "How long to wait before it starts.",
	},
	"idempotencyKeyHeader": object{
		"name": "idempotency-key", "in": "header", "schema": object{"type": "string"},
		"description": "Requests of the same caller with the same key are the same invocation. Callers without credentials share their keys.",
	},
	"idempotencyKeyPath": object{
		"name": "idempotencyKey", "in": "path", "required": true, "schema": object{"type": "string"},
		"description": "The idempotency key that the caller made the invocation with.",
	},
}

var resultHeaders = object{
	"x-platform-id":       object{"description": "Id of the invocation.", "schema": object{"type": "string"}},
	"idempotency-expires": object{"description": "When the result expires. Absent if it does not.", "schema": object{"type": "string", "format": "date-time"}},
}

var ingressResponses = object{
	"Send": object{"description": "The invocation was accepted; PreviouslyAccepted if an earlier request had created it.", "content": jsonContent(object{
		"type": "object", "required": []string{"invocationId", "status"}, "properties": object{
			"invocationId":  object{"type": "string"},
			"status":        object{"type": "string", "enum": []string{"Accepted", "PreviouslyAccepted"}},
			"executionTime": object{"type": "string", "format": "date-time", "description": "When it starts, if it was delayed."},
		},
	})},
	"GenericError":            object{"description": "The server or the invocation failed.", "content": jsonContent(refer("schemas", "PlatformError"))},
	"InvocationNotFoundError": object{"description": "There is no such invocation.", "content": jsonContent(refer("schemas", "PlatformError"))},
	"InvocationNotReadyError": object{"description": "The invocation has not completed yet.", "content": jsonContent(refer("schemas", "PlatformError"))},
}

var ingressError = object{
	"type": "object", "title": "PlatformError", "required": []string{"message"}, "properties": object{
		"code":     object{"type": "integer", "description": "The status again, or the code of the handler's terminal error."},
		"message":  object{"type": "string"},
		"source":   object{"type": "string", "enum": []string{"ingress", "invocation"}, "description": "Whose error it is."},
		"metadata": object{"type": "object", "additionalProperties": object{"type": "string"}},
	},
}

// media describes a body; its JSON schema becomes a component with the given name.
func (d *serviceDocument) media(name string, schema json.RawMessage) object {
	var decoded any
	if len(schema) == 0 || json.Unmarshal(schema, &decoded) != nil {
		return object{}
	}
	if root, ok := decoded.(object); ok {
		delete(root, "$schema")
		if _, own := root["$id"]; !own {
			relocate(root, "#/components/schemas/"+name)
		}
	}
	d.schemas[name] = decoded
	return object{"schema": refer("schemas", name)}
}

// relocate makes references within a schema relative to its new location.
func relocate(value any, to string) {
	switch v := value.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok && (ref == "#" || strings.HasPrefix(ref, "#/")) {
			v["$ref"] = to + ref[1:]
		}
		for key, part := range v {
			switch key {
			case "const", "enum", "default", "examples": // values, not schemas
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas": // the keys are names
				if named, ok := part.(object); ok {
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
