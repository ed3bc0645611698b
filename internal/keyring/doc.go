// Package keyring encrypts secrets before they are stored, with AES-256-GCM under one of
// several keys, so that keys can be replaced. An encrypted secret names its key and is bound to
// the place where it is stored.
package keyring
