package backend

import (
	"platform/admin"
	"platform/internal/cluster/routing"
	"platform/internal/feature"
	"platform/invoker/protocol"
	"platform/metadata"
)

// Invocations gives the admin API access to the invocations of all partitions. It is safe for
// concurrent use.
type Invocations struct {
	*catalog
	*operator
}

var _ admin.Invocations = Invocations{}

// NewInvocations returns the invocations of the partitions that router reaches. level returns the
// cluster's feature level; speaks are the service protocol versions that this server supports.
func NewInvocations(router *routing.Router, schemas func() *metadata.Schemas, level func() feature.Level, speaks protocol.Range) Invocations {
	return Invocations{&catalog{router, schemas, level}, &operator{router, schemas, level, speaks}}
}
