// Package backend implements the admin API and the data sources of SQL: it finds invocations on
// all partitions, describes them for users, performs the operations that operators request, and
// combines the state of the cluster from the reports of its nodes.
//
// Read invocations.go first, then catalog.go and operator.go; for the cluster, cluster.go and
// clusterview.go.
package backend
