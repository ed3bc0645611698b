// Package kafka reads event subscriptions from Kafka clusters and makes an invocation of each
// record.
//
// Every topic partition of a subscription belongs to a partition of the server, whose leader
// reads it. Records go directly to the partitions that own the invocations, which store each
// once; the position goes to the partition that owns the topic partition. See DESIGN.md.
//
// Read engine.go and reader.go first, then stream.go, window.go, handover.go and lane.go.
package kafka
