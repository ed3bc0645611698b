package node

import (
	"time"

	"platform/ingress/kafka"
	"platform/internal/version"
)

// kafkaMemory bounds the records of event streams that a node holds, in bytes.
const kafkaMemory = 64 << 20

// newKafka returns the engine that reads event subscriptions.
func (n *Node) newKafka() *kafka.Engine {
	defaults := defaultsOf(n.cfg)
	return kafka.New(kafka.Config{
		Source: n.metadata, Partitions: n.router, Defaults: &defaults,
		Dial:  n.egress().Dialer(10 * time.Second).DialContext,
		Level: n.metadata.FeatureLevel, FlowControl: n.cfg.FlowControl(), Version: version.Version(),
		RecordSize: int(n.cfg.Networking.MessageSizeLimit), Memory: kafkaMemory,
		Metrics: n.metrics.kafka, Log: n.log.With("component", "platform/kafka"),
	})
}
