// Package subscriptions serves the routes of the admin API for event subscriptions and the Kafka
// clusters that they read: their definitions and state, the records that block a topic partition, and
// dead letters.
//
// Package internal/subscription decides which definitions are valid, and package ingress/kafka reads the
// topics. This package converts requests to changes of the metadata, and reports of nodes to responses.
//
// Read routes.go first, then subscriptions.go.
package subscriptions
