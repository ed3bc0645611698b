// Package transports tests the transports to endpoints that the SDK suite does not cover,
// on a real server: functions, with a fake cloud API, and HTTP proxies. Options are set
// by their public configuration keys.
package transports
