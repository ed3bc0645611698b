// Package chaos kills the server and services with SIGKILL while they work, and
// checks from outside that no acknowledged work was lost, none was done twice and
// everything goes on soon after the processes are back.
//
// CHAOS_ROUNDS sets the number of kills (5 unless given; `make chaos` takes 200)
// and CHAOS_ANSWER_LIMIT how soon every key must answer after a restart.
package chaos
