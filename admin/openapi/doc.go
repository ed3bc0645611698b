// Package openapi generates OpenAPI documents: of an API, from descriptions of its operations and the
// Go types of its bodies, and of the requests that the ingress accepts for a service.
package openapi
