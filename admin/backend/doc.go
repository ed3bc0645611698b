// Package backend is what stands behind the admin API and SQL: it finds invocations on all
// partitions, describes them for users, carries out what operators request of them, and
// puts together the state of the cluster from what its nodes know.
//
// Read invocations.go first, then catalog.go and operator.go; for the cluster, cluster.go
// and clusterview.go.
package backend
