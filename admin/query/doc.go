// Package query answers SQL queries about the system: which invocations are running, waiting and
// failing, and what is stored and registered, on all partitions.
//
// The language is that of an embedded SQLite with virtual tables, whose rows are read from the
// partition leaders and the metadata while a query runs. A query is first rewritten, token by
// token, to the SQLite dialect (INTERVAL, casts, schema names), then prepared under an authorizer
// that allows only reads. Conditions on IDs, keys, services, statuses and partition keys are
// evaluated by the partitions.
//
// Tables are read page by page; between two pages a query holds no resources of a partition. Each
// page is consistent; a query as a whole is not.
//
// Read engine.go first, then table.go, vtab.go and selection.go; rewrite.go for the language;
// DESIGN.md for reasons and measurements.
package query
