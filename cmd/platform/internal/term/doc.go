// Package term prints for people: tables, blocks, times and colours. Colours
// appear only on terminals, or where CLICOLOR_FORCE asks for them.
package term
