package discovery

import (
	"encoding/json"
	"strings"
)

// Keywords of JSON Schema whose values contain schemas, by type of the value.
var (
	schemaKeywords = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	listKeywords = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	mapKeywords  = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

// maxSchemaDepth is far above the depth of real schemas.
const maxSchemaDepth = 200

// checkSchema rejects invalid JSON Schemas and references to other documents, which are not
// fetched. An absent schema is valid.
func checkSchema(raw json.RawMessage, of string) error {
	if raw == nil {
		return nil
	}
	var schema any
	if err := json.Unmarshal(raw, &schema); err != nil {
		return invalid("%s: %v", of, err)
	}
	return walkSchema(schema, of, 0)
}

func walkSchema(schema any, of string, depth int) error {
	if _, ok := schema.(bool); ok {
		return nil
	}
	fields, ok := schema.(map[string]any)
	if !ok {
		return invalid("%s: a schema must be an object or a boolean", of)
	}
	if depth > maxSchemaDepth {
		return invalid("%s: nested too deeply", of)
	}
	if err := checkKeywords(fields, of); err != nil {
		return err
	}
	for _, inner := range innerSchemas(fields) {
		if err := walkSchema(inner, of, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func checkKeywords(fields map[string]any, of string) error {
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, present := fields[keyword]
		if !present {
			continue
		}
		if text, ok := ref.(string); !ok || !strings.HasPrefix(text, "#") {
			return invalid("%s: %s must refer to a location inside the schema", of, keyword)
		}
	}
	kinds, present := fields["type"]
	if !present {
		return nil
	}
	list, ok := kinds.([]any)
	if !ok {
		list = []any{kinds}
	}
	for _, kind := range list {
		switch kind {
		case "null", "boolean", "object", "array", "number", "string", "integer":
		default:
			return invalid("%s: unknown type %v", of, kind)
		}
	}
	return nil
}

// innerSchemas returns the schemas directly nested in a schema.
func innerSchemas(fields map[string]any) (inner []any) {
	for _, keyword := range schemaKeywords {
		if v, present := fields[keyword]; present {
			if _, list := v.([]any); !list {
				inner = append(inner, v)
			}
		}
	}
	for _, keyword := range listKeywords {
		if list, ok := fields[keyword].([]any); ok {
			inner = append(inner, list...)
		}
	}
	for _, keyword := range mapKeywords {
		if named, ok := fields[keyword].(map[string]any); ok {
			for _, v := range named {
				inner = append(inner, v)
			}
		}
	}
	return inner
}
