// Package oidc tests logins of users with a real OpenID Connect provider: the npm package
// oidc-provider, which `make oidc-deps` installs.
package oidc
