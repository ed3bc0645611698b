// Package enroll tests clusters of real processes whose nodes get their certificates from the
// cluster: join tokens, renewals under load, the replacement of the authority, and what the
// certificate of a removed node still permits.
package enroll
