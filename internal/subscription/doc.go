// Package subscription defines event subscriptions: which topics of a Kafka cluster are
// delivered to which handler, and how. It has the types that the metadata stores, the
// validation of what operators request, the properties of Kafka clients, and what nodes report
// about subscriptions. It does no I/O.
//
// Read subscription.go, cluster.go and status.go first.
package subscription
