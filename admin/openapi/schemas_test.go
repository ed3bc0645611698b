package openapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type size uint32

type base struct {
	ID string `json:"id"`
}

type box struct {
	base
	Size   size            `json:"size"`
	Parent *box            `json:"parent"`
	Labels map[string]bool `json:"labels,omitempty"`
	Any    any             `json:"any"`
	Secret string          `json:"-"`
}

func TestSchemasFollowFromGoTypes(t *testing.T) {
	api := API{
		Title: "Boxes", ErrorBody: struct{ Message string }{},
		Schemas: Schemas{
			Names:         map[reflect.Type]string{reflect.TypeFor[box](): "Crate"},
			Types:         map[reflect.Type]Object{reflect.TypeFor[size](): {"type": "integer", "maximum": 9}},
			FieldMeanings: map[string]string{"Crate.size": "Size in m."},
			Fields:        map[string]Object{"Crate.any": {"enum": []int{1}}},
		},
	}
	for name, test := range map[string]struct {
		operation Operation
		crate     string
	}{
		"responses require the fields that are never omitted, and pointers may be null": {
			Operation{Responses: OK("The box", box{})},
			`{"type": "object", "required": ["id", "size", "parent", "any"], "properties": {
				"id": {"type": "string"},
				"size": {"type": "integer", "maximum": 9, "description": "Size in m."},
				"parent": {"anyOf": [{"$ref": "#/components/schemas/Crate"}, {"type": "null"}]},
				"labels": {"type": "object", "additionalProperties": {"type": "boolean"}},
				"any": {"enum": [1]}}}`,
		},
		"requests require no field": {
			Operation{Body: box{}},
			`{"type": "object", "properties": {
				"id": {"type": "string"},
				"size": {"type": "integer", "maximum": 9, "description": "Size in m."},
				"parent": {"$ref": "#/components/schemas/Crate"},
				"labels": {"type": "object", "additionalProperties": {"type": "boolean"}},
				"any": {"enum": [1]}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			document := api.Document([]Route{{http.MethodPut, "/boxes/:box", test.operation}}, "1")
			crate, err := json.Marshal(document["components"].(Object)["schemas"].(Object)["Crate"])
			require.NoError(t, err)
			require.JSONEq(t, test.crate, string(crate))
		})
	}
}

func TestOperationsDescribeParametersAndResponses(t *testing.T) {
	api := API{
		Title: "Boxes", Description: "All boxes.", ErrorBody: "",
		PathParameters: map[string]string{"box": "name of a box"}, Errors: map[int]string{http.StatusNotFound: "No such box"},
	}
	document, err := json.Marshal(api.Document([]Route{{http.MethodGet, "/boxes/:box", Operation{
		ID: "get_box", Tag: "box", Summary: "Show a box",
		Query:     []Object{QueryParameter("full", "Everything.", Object{"type": "boolean"})},
		Responses: []Response{Returns(http.StatusOK, "The box", []byte(nil)), Returns(http.StatusAccepted, "Ordered", nil)},
		Errors:    []int{http.StatusNotFound},
	}}}, "1.2.3"))
	require.NoError(t, err)
	require.JSONEq(t, `{
		"openapi": "3.1.0", "info": {"title": "Boxes", "description": "All boxes.", "version": "1.2.3"}, "tags": null, "components": {"schemas": {}},
		"paths": {"/boxes/{box}": {"get": {
			"operationId": "get_box", "tags": ["box"], "summary": "Show a box",
			"parameters": [
				{"name": "box", "in": "path", "required": true, "schema": {"type": "string"}, "description": "name of a box"},
				{"name": "full", "in": "query", "schema": {"type": "boolean"}, "description": "Everything."}],
			"responses": {
				"200": {"description": "The box", "content": {"application/octet-stream": {}}},
				"202": {"description": "Ordered"},
				"404": {"description": "No such box", "content": {"application/json": {"schema": {"type": "string"}}}}}}}}}`, string(document))
}
