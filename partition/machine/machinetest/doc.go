// Package machinetest supports tests of the machine and of the packages around it: the
// tables of a partition in memory, a readable dump of them, their invariants, and builders
// of journal commands.
package machinetest
