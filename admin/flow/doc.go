// Package flow serves the routes of the admin API for flow control: it shows and changes the rules,
// pauses and resumes vqueues and scopes, and lists vqueues and the counters of limits.
//
// Package flowcontrol decides what rules mean and which invocations start. This package decodes
// changes of rules, and reads vqueues and counters with SQL.
//
// Read routes.go first, then rules.go.
package flow
