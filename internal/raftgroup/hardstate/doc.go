// Package hardstate keeps replicas from forgetting what they have promised: term, vote and stored
// entries.
//
// A File records these a second time, outside the databases that store them, and WrapStorage
// keeps the record current. Reconcile compares storage, record and tables of a replica before it
// is started; a replica that has lost anything is quarantined, since it could vote twice or
// acknowledge entries that it no longer has. AssessLoss and ForceConfiguration let an operator
// continue from what is left.
//
// Read file.go first, then storage.go, startcheck.go and loss.go.
package hardstate
