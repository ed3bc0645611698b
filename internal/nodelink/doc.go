// Package nodelink has what all connections between nodes share: how they are dialed and
// secured, how nodes identify themselves, and streams of requests and responses in any order.
//
// Raft (internal/raftgroup) and the requests of partitions (internal/cluster/fabric) have streams of
// their own, because a large response must not delay a heartbeat. They differ in what they
// queue, and in what an unresponsive node means to them.
package nodelink
