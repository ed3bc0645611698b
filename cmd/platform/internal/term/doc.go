// Package term formats output for terminals: tables, blocks, times and colours. Colours are
// used only on terminals, or with CLICOLOR_FORCE.
package term
