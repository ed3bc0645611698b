// Package query answers SQL questions about the system: what is running, waiting,
// failing, stored and registered, on all partitions.
//
// The language is that of an embedded SQLite, whose tables are virtual: their rows are
// read from the leaders of the partitions and from the metadata while a query runs. A
// query is first rewritten token by token to what SQLite understands (INTERVAL, casts,
// schema names), then prepared under an authorizer that admits nothing but reading.
// Conditions on ids, keys, services, statuses and partition keys are carried out where
// the rows are.
//
// Reading is done page by page; between two pages a query holds nothing of a
// partition. A page is consistent, a query as a whole is not.
//
// Read engine.go first, then table.go, vtab.go and selection.go; rewrite.go for the
// language; DESIGN.md for reasons and figures.
package query
