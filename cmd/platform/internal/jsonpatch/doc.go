// Package jsonpatch changes JSON documents by patches: lists of operations (RFC 6902),
// and objects that are merged into the document (RFC 7396).
package jsonpatch
