// Package deployments serves the routes of the admin API for deployments and their services: it
// registers the services of an endpoint, shows and changes deployments, and shows services and changes
// their options.
//
// Package invoker/discovery sends the requests to endpoints, and package metadata decides which
// registrations are compatible. This package combines the two, and explains in notices what the server
// changed or ignored.
//
// Read routes.go first, then register.go.
package deployments
