// Package load uses a cluster as clients do, while somebody breaks it, and checks
// afterwards that what they were told has come true.
//
// A Run is some workers, each of which does one kind of thing over and over: add to
// ledgers by calls, sends and other objects, read and write registers, go through
// steps, enter where only one may be, sleep, wait for a word, order. All keys are
// fresh for each run. A worker keeps its own record of what it asked for and what it
// was answered; its checker (package history) compares that with what is there.
//
// Clients come in two kinds. Those that roam use any node that Nodes does not call
// in trouble, as behind a load balancer: each of their requests that fails there is
// a failure of the cluster. Those at home use one node whatever happens to it, which
// may fail but never lie.
package load
