// Package kafka tests event subscriptions with real Kafka brokers: records are produced while
// servers and brokers are killed, and each must become exactly one invocation.
//
// The jars of the broker are downloaded by make kafka-jars; without them, or without Java, the
// tests are skipped. KAFKA_RECORDS, KAFKA_KEYS and KAFKA_KILLS change the size of the long test.
package kafka
