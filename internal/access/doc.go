// Package access authenticates and authorizes requests to the HTTP ports of a node.
//
// A Guard protects a port from web pages: it checks the host name that the request was sent to and
// the origin of the page that sent it. An Authenticator determines the Principal of a request from
// its token, which is in the Authorization header or, for the Sessions of browsers, in a cookie. A
// Principal has roles, which are sets of permissions, and each route requires one.
package access
