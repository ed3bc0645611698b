package node

import (
	"time"

	"platform/ingress/kafka"
	"platform/internal/config"
	"platform/internal/subscription"
	"platform/internal/version"
	"platform/metadata"
)

// kafkaMemory limits the records of event streams in memory, in bytes.
const kafkaMemory = 64 << 20

// newKafka returns the engine that reads event subscriptions.
func (n *Node) newKafka() *kafka.Engine {
	return kafka.New(kafka.Config{
		Source: &kafkaSource{n.metadata, n.cfg.Ingress.KafkaClusters}, Partitions: n.router, Defaults: n.defaults.Load,
		Dial:  egressPolicy(n.cfg, n.listeners).Dialer(10 * time.Second).DialContext,
		Level: n.metadata.FeatureLevel, FlowControl: n.cfg.FlowControl(), Version: version.Version(),
		RecordSize: int(n.cfg.Networking.MessageSizeLimit), Memory: kafkaMemory,
		Metrics: n.metrics.kafka, Tracer: n.exports.tracer, Log: n.log.With("component", "platform/kafka"),
	})
}

// kafkaSource adds the Kafka clusters of the configuration to those of the metadata.
type kafkaSource struct {
	*metadata.Store
	static config.KafkaClusters
}

// KafkaCluster returns a cluster; those of the configuration take precedence.
func (s *kafkaSource) KafkaCluster(name string) (subscription.Cluster, bool) {
	for _, c := range s.static {
		if c.Name == name {
			return c, true
		}
	}
	return s.Store.KafkaCluster(name)
}
