// Package invoker runs attempts: it speaks the service protocol with the endpoints
// that hold the user's handlers. An attempt replays the journal, passes on new
// notifications, turns what the handler asks for into progress that the partition
// commits, and ends with an output, a suspension or a failure, which the retry
// policy answers.
//
// One Invoker serves a node; each partition that the node leads opens a Session,
// which lives as long as the leadership. Discovery of endpoints lives here too,
// since it uses the same clients.
package invoker
