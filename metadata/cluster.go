package metadata

import "time"

// Cluster is what is decided once, when a cluster comes into being, and never
// changes after.
type Cluster struct {
	Name          string
	ID            string // unlike the name, no two clusters share it
	Partitions    uint32
	ProvisionedAt time.Time
}

// Node is one member of the cluster, known by its name.
type Node struct {
	Name string
	ID   uint32 // given out in order of registration, from 1
	// Incarnation changes when the node's data directory is lost: what the node
	// promised as a Raft voter went with it.
	Incarnation string
	// The addresses under which other nodes and users reach it.
	FabricAddress  string
	IngressAddress string
	AdminAddress   string
	RegisteredAt   time.Time // first registration of the name
}
