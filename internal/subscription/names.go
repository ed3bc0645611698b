package subscription

import (
	"fmt"
	"slices"
)

// Names in the API, by number.
var (
	orderingNames  = []string{"key", "partition", "none"}
	onErrorNames   = []string{"block", "skip", "dead-letter"}
	tombstoneNames = []string{"deliver", "skip"}
	recreateNames  = []string{"error", "earliest"}
	startNames     = []string{"", "latest", "earliest", "timestamp", "offsets", "group"}
)

func name(names []string, n uint8) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("unknown %d", n)
}

func (o Ordering) String() string   { return name(orderingNames, uint8(o)) }
func (o OnError) String() string    { return name(onErrorNames, uint8(o)) }
func (t Tombstones) String() string { return name(tombstoneNames, uint8(t)) }
func (r OnRecreate) String() string { return name(recreateNames, uint8(r)) }
func (k StartKind) String() string  { return name(startNames, uint8(k)) }

// ParseOrdering parses the name of an ordering.
func ParseOrdering(s string) (Ordering, error) {
	n, err := parseName("ordering", orderingNames, s)
	return Ordering(n), err
}

// ParseOnError parses the name of a treatment of records that cannot be delivered.
func ParseOnError(s string) (OnError, error) {
	n, err := parseName("on_error", onErrorNames, s)
	return OnError(n), err
}

// ParseTombstones parses the name of a treatment of tombstones.
func ParseTombstones(s string) (Tombstones, error) {
	n, err := parseName("tombstones", tombstoneNames, s)
	return Tombstones(n), err
}

// ParseOnRecreate parses the name of a treatment of topics that were created again.
func ParseOnRecreate(s string) (OnRecreate, error) {
	n, err := parseName("on_recreate", recreateNames, s)
	return OnRecreate(n), err
}

func parseName(field string, names []string, s string) (uint8, error) {
	if at := slices.Index(names, s); at >= 0 {
		return uint8(at), nil //nolint:gosec // few names
	}
	return 0, invalid("%s is %s, expected one of %q", field, quote(s), names).In(field)
}
