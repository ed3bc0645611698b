// Package chaos kills the server and the services with SIGKILL under load and checks from
// outside that acknowledged work is neither lost nor repeated and that processing resumes
// soon after a restart.
//
// CHAOS_ROUNDS sets the number of kills (default 5; `make chaos` uses 200) and
// CHAOS_RESPONSE_TIMEOUT how soon every key must respond after a restart.
package chaos
