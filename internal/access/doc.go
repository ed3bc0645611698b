// Package access decides who may do what at the HTTP ports of a node.
//
// A Guard protects a port from web pages: it checks which name the request was sent to, and
// which page sent it. An Authenticator finds the Principal of a request by its token. A
// Principal has roles, which are sets of permissions, and each route requires one.
package access
