package store

import (
	"maps"
	"slices"
)

// TableOf returns the name of the table of a key of Export.Rows, for operators.
func TableOf(key []byte) string {
	if len(key) == 0 {
		return ""
	}
	if name, known := tableNames[key[0]]; known {
		return name
	}
	return "unknown"
}

// Tables returns the names of all tables.
func Tables() []string { return slices.Sorted(maps.Values(tableNames)) }

var tableNames = map[byte]string{
	tableMeta:             "meta",
	tableLive:             "live",
	tableDone:             "completed",
	tableJournal:          "journal",
	tableNotified:         "notified",
	tableValues:           "state",
	tablePromises:         "promises",
	tableLocks:            "locks",
	tableWaiting:          "waiting",
	tableTimers:           "timers",
	tableOutbox:           "outbox",
	tableSent:             "sent",
	tableDelivered:        "delivered",
	tableCounters:         "counters",
	tableVQueues:          "vqueues",
	tableQueued:           "queued",
	tableRings:            "rings",
	tableRules:            "rules",
	tableIngested:         "ingested",
	tableForgotten:        "forgotten",
	tablePositions:        "positions",
	tableDeadLetters:      "dead letters",
	tableDeadLetterTotals: "dead letter totals",
	tableEvents:           "events",
}
