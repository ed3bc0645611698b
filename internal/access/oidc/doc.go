// Package oidc logs users in at an OpenID Connect provider: in a browser by the authorization code
// flow with PKCE, and on the command line with an ID token that the user got by the device flow.
//
// A login results in an Account, whose roles follow from the claims of the ID token. The package
// holds no state about users: what a login in a browser needs later is in an Attempt, which the
// browser keeps, so any node can complete a login that another one has begun.
package oidc
