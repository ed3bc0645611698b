// Package metadata holds the protobuf messages that the metadata group writes to
// its log and to disk. Package platform/metadata converts them at its edge and
// explains them.
package metadata
