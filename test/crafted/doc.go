// Package crafted sends malformed, hostile and random requests to every listener of a server
// process, and requires that it neither ends nor stops responding to others.
package crafted
