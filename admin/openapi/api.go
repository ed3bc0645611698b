package openapi

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Object is a JSON object of an OpenAPI document.
type Object = map[string]any

const version = "3.1.0"

// API describes an API apart from its operations.
type API struct {
	Title, Description string
	// Tags are the groups of operations.
	Tags []Object
	// PathParameters are the descriptions of path parameters.
	PathParameters map[string]string
	// Errors are the descriptions of statuses of errors, whose bodies have the type of ErrorBody.
	Errors    map[int]string
	ErrorBody any
	Schemas   Schemas
}

// Route is a method and a path, whose parameters begin with a colon, with its description.
type Route struct {
	Method, Path string
	Operation    Operation
}

// Operation describes the request and the responses of a route.
type Operation struct {
	ID, Tag, Summary string
	// Query are the query parameters (QueryParameter). With AnyQuery, others are ignored.
	Query    []Object
	AnyQuery bool
	// Body is a value of the type of the request body, or its schema; nil if there is none.
	Body      any
	Responses []Response
	// Errors are the statuses of errors.
	Errors []int
}

// Response is a successful response.
type Response struct {
	status  int
	meaning string
	body    any
}

// Returns describes a successful response. Its body is a value of the type of the body, or its schema;
// nil if there is none.
func Returns(status int, meaning string, body any) Response { return Response{status, meaning, body} }

// OK describes the only successful response of an operation, with status 200.
func OK(meaning string, body any) []Response {
	return []Response{Returns(http.StatusOK, meaning, body)}
}

// QueryNames returns the names of the query parameters, sorted.
func (op Operation) QueryNames() []string {
	var names []string
	for _, parameter := range op.Query {
		names = append(names, parameter["name"].(string))
	}
	slices.Sort(names)
	return names
}

// Repeatable reports whether a query parameter may have several values.
func (op Operation) Repeatable(name string) bool {
	return slices.ContainsFunc(op.Query, func(parameter Object) bool {
		return parameter["name"] == name && parameter["schema"].(Object)["type"] == "array"
	})
}

// Document generates the OpenAPI document of the routes of a version of the API.
func (a *API) Document(routes []Route, apiVersion string) Object {
	components := componentSet{schemas: &a.Schemas, components: Object{}}
	paths := Object{}
	for _, r := range routes {
		path := Template(r.Path)
		item, known := paths[path].(Object)
		if !known {
			item = Object{}
			paths[path] = item
		}
		item[strings.ToLower(r.Method)] = a.operation(r, components)
	}
	return Object{
		"openapi":    version,
		"info":       Object{"title": a.Title, "version": apiVersion, "description": a.Description},
		"tags":       a.Tags,
		"paths":      paths,
		"components": Object{"schemas": components.components},
	}
}

// Template converts a path such as /services/:service to /services/{service}.
func Template(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			segments[i] = "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}

// pathParameters describes the parameters of a path such as /services/:service.
func (a *API) pathParameters(path string) (parameters []Object) {
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, ":"); ok {
			parameters = append(parameters, Object{
				"name": name, "in": "path", "required": true, "schema": Object{"type": "string"}, "description": a.PathParameters[name],
			})
		}
	}
	return parameters
}

func (a *API) operation(r Route, components componentSet) Object {
	op := &r.Operation
	described := Object{"tags": []string{op.Tag}, "summary": op.Summary, "responses": a.responses(op, components)}
	if op.ID != "" {
		described["operationId"] = op.ID
	}
	if parameters := append(a.pathParameters(r.Path), op.Query...); len(parameters) > 0 {
		described["parameters"] = parameters
	}
	if op.Body != nil {
		described["requestBody"] = Object{"required": true, "content": jsonContent(components.schema(op.Body, request))}
	}
	return described
}

func (a *API) responses(op *Operation, components componentSet) Object {
	responses := Object{}
	for _, r := range op.Responses {
		described := Object{"description": r.meaning}
		switch r.body.(type) {
		case nil:
		case []byte:
			described["content"] = Object{"application/octet-stream": Object{}}
		default:
			described["content"] = jsonContent(components.schema(r.body, response))
		}
		responses[strconv.Itoa(r.status)] = described
	}
	for _, status := range op.Errors {
		responses[strconv.Itoa(status)] = Object{
			"description": a.Errors[status], "content": jsonContent(components.schema(a.ErrorBody, response)),
		}
	}
	return responses
}

func jsonContent(schema Object) Object { return Object{"application/json": Object{"schema": schema}} }

// ListOf returns the schema of {"name": [element…]}.
func ListOf[T any](name string) Object {
	return Object{"type": "object", "required": []string{name}, "properties": Object{name: ArrayOf[T]()}}
}

// ArrayOf returns the schema of [element…].
func ArrayOf[T any]() Object { return Object{"type": "array", "items": reflect.TypeFor[T]()} }
