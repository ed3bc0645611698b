// Package harness starts what end-to-end tests and benchmarks need: a server
// process on a data directory of its own, service endpoints, a recorder that
// services report side effects to, and a client of the ingress.
//
// Everything runs on 127.0.0.1 on free ports. A server survives being killed:
// Kill sends SIGKILL, Restart starts it again on the same directory and ports.
//
// Which server is started is told by a target file; targets/platform.json is the
// default and SERVER_UNDER_TEST names another one, so that the same cases can be
// held against a second implementation of the interface.
package harness
