// Package tokens serves the routes of the admin API for access tokens, for logins with an identity
// provider, which create the token of a session, and for the join tokens of nodes. It also keeps the
// token of the administrator, which is in a file, and the times at which tokens were last used.
//
// Package internal/access decides what a token permits, and package internal/access/oidc speaks with the
// identity provider.
//
// Read routes.go first, then tokens.go and login.go.
package tokens
