// Package invoker runs attempts: it speaks the service protocol with the endpoints that run
// the user's handlers. An attempt replays the journal, passes on new notifications,
// converts the handler's commands into progress that the partition commits, and ends with
// an output, a suspension or a failure, which is subject to the retry policy.
//
// A node has one Invoker; each partition that the node leads opens a Session, which lasts
// as long as the leadership. Discovery of endpoints uses the same clients.
//
// Read session.go (the interface to the partition), task.go and lifecycle.go (an admitted
// invocation and its states) first; then attempt.go, receive.go and settle.go (one request: what is
// sent, what arrives, what is stored), and slots.go (who may run). DESIGN.md has the reasons.
package invoker
