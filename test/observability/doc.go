// Package observability tests the dashboard and the alerts in deploy with Prometheus, which
// Debian has as the package prometheus. Without it the tests that need it are skipped.
package observability
