package openapi

import (
	"cmp"
	"maps"
	"reflect"
	"strings"
)

// Schemas is what the JSON schemas of an API contain besides what follows from Go types. Fields have
// names such as "Deployment.metadata", of a component and a JSON field.
type Schemas struct {
	// Names are the names of components, if these differ from the names of the types.
	Names map[reflect.Type]string
	// Types are the schemas of types, if these do not follow from the kind of the type.
	Types map[reflect.Type]Object
	// Fields are the schemas of fields that cannot be derived from their types.
	Fields map[string]Object
	// FieldMeanings are descriptions of fields whose names are not self-explanatory.
	FieldMeanings map[string]string
}

// usage is where a type is used: in responses, fields that are never omitted are required; in
// requests, no field is.
type usage int

const (
	request usage = iota
	response
)

// componentSet generates JSON schemas of Go types. Structs become components.
type componentSet struct {
	schemas    *Schemas
	components Object
}

// schema returns the schema of a value's type, or the value itself if it is a schema, in which types
// are replaced by their schemas.
func (s componentSet) schema(value any, u usage) Object {
	switch v := value.(type) {
	case Object:
		return s.resolve(v, u)
	case reflect.Type:
		return s.of(v, u)
	}
	return s.of(reflect.TypeOf(value), u)
}

// resolve replaces types within a schema by their schemas.
func (s componentSet) resolve(schema Object, u usage) Object {
	out := Object{}
	for key, value := range schema {
		switch v := value.(type) {
		case Object:
			out[key] = s.resolve(v, u)
		case reflect.Type:
			out[key] = s.of(v, u)
		default:
			out[key] = v
		}
	}
	return out
}

func (s componentSet) of(t reflect.Type, u usage) Object {
	if schema, known := s.schemas.Types[t]; known {
		return schema
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), u)
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.String:
		return Object{"type": "string"}
	case reflect.Float64:
		return Object{"type": "number"}
	case reflect.Slice:
		return Object{"type": "array", "items": s.of(t.Elem(), u)}
	case reflect.Map:
		return Object{"type": "object", "additionalProperties": s.of(t.Elem(), u)}
	case reflect.Interface:
		return Object{}
	case reflect.Struct:
		return s.component(t, u)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return Object{"type": "integer", "minimum": 0}
	}
	return Object{"type": "integer"}
}

// component adds the schema of a struct to the components and returns a reference to it.
func (s componentSet) component(t reflect.Type, u usage) Object {
	name := cmp.Or(s.schemas.Names[t], strings.ToUpper(t.Name()[:1])+t.Name()[1:])
	if s.components[name] != nil {
		return refer("schemas", name)
	}
	properties, required := Object{}, []string{}
	schema := Object{"type": "object", "properties": properties}
	s.components[name] = schema // set before the fields, whose types may refer to it
	for _, field := range reflect.VisibleFields(t) {
		json, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if json == "" && field.Anonymous {
			continue // its fields follow as promoted ones
		}
		if !field.IsExported() || json == "-" {
			continue
		}
		property := s.of(field.Type, u)
		omitted := options != ""
		if u == response && field.Type.Kind() == reflect.Pointer && !omitted {
			property = Object{"anyOf": []Object{property, {"type": "null"}}}
		}
		properties[json] = s.schemas.field(name+"."+json, property)
		if u == response && !omitted {
			required = append(required, json)
		}
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return refer("schemas", name)
}

// field returns the schema of a field, with its description.
func (s *Schemas) field(name string, derived Object) Object {
	schema := derived
	if special, ok := s.Fields[name]; ok {
		schema = special
	}
	meaning := s.FieldMeanings[name]
	if meaning == "" {
		return schema
	}
	schema = maps.Clone(schema)
	schema["description"] = meaning
	return schema
}

func refer(kind, name string) Object { return Object{"$ref": "#/components/" + kind + "/" + name} }
