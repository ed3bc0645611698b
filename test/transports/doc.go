// Package transports holds the ways to endpoints that the suite of the SDKs does not
// take, against a real server: functions, behind a stand-in for the cloud's API, and
// proxies. The keys that are configured are those that users set.
package transports
