//go:build simulation

// This file lets runtime.go declare functions without bodies.
