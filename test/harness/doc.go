// Package harness runs server processes, clusters and service endpoints for
// end-to-end tests and benchmarks. It also provides a Recorder, to which services
// report side effects, and a Client of the ingress.
//
// All processes listen on free ports of 127.0.0.1 by default. A killed server can be
// restarted on the same data directory and ports.
//
// A target file describes how the server is started. The default is
// targets/platform.json; SERVER_UNDER_TEST names another one, so that the same tests
// can run against another implementation of the interface.
package harness
