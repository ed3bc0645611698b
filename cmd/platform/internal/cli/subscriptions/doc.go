// Package subscriptions has the commands below `platform subscriptions`, including those for dead
// letters, and `platform kafka-clusters`.
package subscriptions
