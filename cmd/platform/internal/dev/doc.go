// Package dev runs servers for development: one or several nodes as child processes on this
// machine, optionally with the sample service.
//
// Read dev.go first.
package dev
