// Package jwt authenticates clients by tokens of an identity provider: JSON web tokens with an
// issuer, an audience and a claim whose values are mapped to roles. Without a mapped value a
// valid token permits nothing.
package jwt
