package rest

import (
	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/metadata"
)

// Keys under which handlers store data for the audit record in the context of a request.
const (
	auditObject  = "audit object"  // string
	auditObjects = "audit objects" // []string
	auditNothing = "audit nothing" // bool
	auditDryRun  = "audit dry run" // bool
)

// Audited is what a handler has stated for the audit record of its request.
type Audited struct {
	// Object is what the request is about: its path, and what Concerns has added.
	Object string
	// Objects are the objects of a request about several.
	Objects []string
	// Nothing is set if the request changed nothing, DryRun if it only asks what would change.
	Nothing, DryRun bool
}

// AuditedOf returns what the handler of a request has stated for its audit record.
func AuditedOf(c echo.Context) Audited {
	object, ok := c.Get(auditObject).(string)
	if !ok {
		object = access.WithoutSecrets(c.Request().URL.RequestURI())
	}
	objects, _ := c.Get(auditObjects).([]string)
	return Audited{Object: object, Objects: objects, Nothing: c.Get(auditNothing) != nil, DryRun: c.Get(auditDryRun) != nil}
}

// Concerns states in the audit records of a request what it is about, after its path, which is the
// same for all objects of a kind.
func Concerns(c echo.Context, what string) {
	object := access.WithoutSecrets(c.Request().URL.RequestURI() + " " + what)
	c.Set(auditObject, object)
	metadata.ActionObject(c.Request().Context(), object)
}

// ConcernsEach states in the audit records of a request that it is about several objects.
func ConcernsEach(c echo.Context, objects []string) {
	c.Set(auditObjects, objects)
	metadata.ActionObjects(c.Request().Context(), objects)
}

// ChangedNothing states that a request changed nothing; such records are rate-limited.
func ChangedNothing(c echo.Context) { c.Set(auditNothing, true) }

// OnlyDryRun states that a request asks what would change.
func OnlyDryRun(c echo.Context) { c.Set(auditDryRun, true) }
