package subscription

import "time"

// Cluster is a Kafka cluster. A value is immutable.
type Cluster struct {
	Name string
	// Properties are the properties of Kafka clients, under the names of librdkafka.
	Properties map[string]string
	// Static means that the configuration of the server defines the cluster.
	Static     bool
	CreatedAt  time.Time // zero if static
	ModifiedAt time.Time
	Version    uint64 // increases with every change of the record

	// Unreadable is why secrets in Properties cannot be decrypted on this node; nil: they can. It
	// is not stored.
	Unreadable error
}
