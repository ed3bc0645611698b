// Package config assembles the server's configuration from defaults, a TOML file, PLATFORM_
// environment variables and command line flags, in that order: later sources take precedence.
//
// The Config struct is the only list of keys. Its key tags name them in TOML; the
// names of variables and flags, the help text, the dump and the suggestions for
// misspelled keys all follow from the struct by reflection.
//
// Every problem is reported with code RT0002, its origin (file and line, variable or flag), the
// key, and the expected value.
//
// Read config.go for the keys, then load.go for how they are loaded.
package config
