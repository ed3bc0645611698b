// Package admin is the REST API with which people and tools look after a server:
// deployments, services, invocations, health, and the catalogue of error codes.
//
// Every route exists bare and below /v2, /v3 and /v4, and is described by the OpenAPI
// document that GET /openapi makes of the route table. Every failure, whoever finds
// it, is answered with the same JSON body: a message and, where the catalogue has
// one, a code. Read routes.go first, then failure.go, and register.go for the one
// request that does more than look something up.
package admin
