package pebbledb

// ManifestBytes is the size from which a manifest is replaced by one that has only the current files.
// A database has the current manifest and its predecessor, and reads the current one when it is opened.
const ManifestBytes = 8 << 20
