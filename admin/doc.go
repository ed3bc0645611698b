// Package admin implements the REST API for operating a cluster: deployments, services,
// invocations, health, and the catalogue of error codes.
//
// Routes exist without a prefix and below /v2, /v3 and /v4. GET /openapi returns the OpenAPI
// document generated from the route table. All errors have the same JSON body: a message and, for
// errors of the catalogue, a code.
//
// Read routes.go first, then errors.go, and deployments/register.go as an example of a request with
// several steps.
package admin
