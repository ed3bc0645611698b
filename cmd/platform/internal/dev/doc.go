// Package dev runs servers for development: one or several nodes as child processes on this
// machine, with the sample service if asked for.
//
// Read dev.go first.
package dev
