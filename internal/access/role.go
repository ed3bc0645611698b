package access

import (
	"fmt"
	"slices"
	"strings"
)

// Permission is what a route requires of its caller.
type Permission string

// The permissions.
const (
	// Public routes are open to all clients.
	Public Permission = "public"
	// View permits reading everything but payloads and tokens.
	View Permission = "view"
	// Payloads permits reading inputs, results and state as well.
	Payloads Permission = "payloads"
	// Metrics permits reading metrics.
	Metrics Permission = "metrics"
	// Invoke permits calling handlers, reading results and sending signals.
	Invoke Permission = "invoke"
	// Complete permits completing awakeables.
	Complete Permission = "complete"
	// Operate permits changing invocations, state and queues.
	Operate Permission = "operate"
	// Deploy permits changing deployments and services.
	Deploy Permission = "deploy"
	// Secure permits managing tokens and reading the audit log.
	Secure Permission = "secure"
	// Administer permits changing the cluster.
	Administer Permission = "administer"
	// Profile permits reading profiles of the process.
	Profile Permission = "profile"
)

// Permissions lists all permissions but Public.
var Permissions = []Permission{View, Payloads, Metrics, Invoke, Complete, Operate, Deploy, Secure, Administer, Profile}

// Role is a set of permissions that can be granted.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Reader   Role = "reader"
	Callback Role = "callback"
	Invoker  Role = "invoker"
	Operator Role = "operator"
	Deployer Role = "deployer"
	Security Role = "security"
	Admin    Role = "admin"
)

// Roles lists the roles from the least to the most.
var Roles = []Role{Viewer, Reader, Callback, Invoker, Operator, Deployer, Security, Admin}

var grants = map[Role][]Permission{
	Viewer:   {View, Metrics},
	Reader:   {View, Metrics, Payloads},
	Callback: {Complete},
	Invoker:  {Invoke, Complete},
	Operator: {View, Metrics, Operate},
	Deployer: {View, Metrics, Deploy},
	Security: {View, Metrics, Secure},
	Admin:    Permissions,
}

// Allows reports whether a role includes a permission.
func (r Role) Allows(p Permission) bool { return p == Public || slices.Contains(grants[r], p) }

// permissionSet returns the permissions of a role. The slice is shared.
func (r Role) permissionSet() []Permission { return grants[r] }

// RolesWith returns the roles that include a permission, for messages.
func RolesWith(p Permission) string {
	var names []string
	for _, r := range Roles {
		if r.Allows(p) {
			names = append(names, string(r))
		}
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// JoinRoles returns the names of roles, separated by commas.
func JoinRoles(roles []Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// ParseRoles checks names of roles.
func ParseRoles(names []string) ([]Role, error) {
	var roles []Role
	for _, name := range names {
		if !slices.Contains(Roles, Role(name)) {
			return nil, fmt.Errorf("there is no role %q; the roles are viewer, reader, callback, invoker, operator, deployer, security and admin", name)
		}
		if !slices.Contains(roles, Role(name)) {
			roles = append(roles, Role(name))
		}
	}
	if len(roles) == 0 {
		return nil, fmt.Errorf("at least one role is needed; the roles are viewer, reader, callback, invoker, operator, deployer, security and admin")
	}
	return roles, nil
}
