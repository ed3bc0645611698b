// Package machinetest has what tests of the machine, and of its neighbours, need:
// the tables of a partition in memory, a readable dump of them, the invariants
// they must keep, and builders of journal commands.
package machinetest
