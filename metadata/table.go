package metadata

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"platform/internal/feature"
)

// ErrCorrupt means that a stored record does not match its checksum.
var ErrCorrupt = errors.New("metadata record damaged")

// Formats of the state file. Versions 2 and 3 have two more tables each; older files are
// upgraded when they are opened. Version 4 has the layout of version 3 and is written from
// feature level 2 on: the first release, which does not know levels, rejects it. The addedTables
// were added to both: they are empty below feature level 4, and older servers ignore them then.
const (
	formatVersion = 3 // written while the cluster is at the first feature level
	newestFormat  = 4 // the newest supported
)

// formatOf returns the format that is written at a feature level.
func formatOf(level feature.Level) uint32 {
	if level >= feature.Level2 {
		return 4
	}
	return formatVersion
}

func sealedFormat(format uint32) []byte { return sealed(binary.BigEndian.AppendUint32(nil, format)) }

// The tables of the state file. Their names are part of the file and of snapshots.
const (
	tableAudit         = "audit"
	tableAuditNodes    = "auditnodes"
	tableAuthority     = "authority"
	tableCluster       = "cluster"
	tableDeployments   = "deployments"
	tableFailureMarks  = "failuremarks"
	tableJobs          = "jobs"
	tableJoinTokens    = "jointokens"
	tableKafkaClusters = "kafkaclusters"
	tableKeptOptions   = "keptoptions"
	tableMeta          = "meta"
	tableNodes         = "nodes"
	tablePartitions    = "partitions"
	tableRequests      = "requests"
	tableRuleBook      = "rulebook"
	tableRules         = "rules"
	tableSubscriptions = "subscriptions"
	tableTokens        = "tokens"
)

// tables is in ascending order.
var tables = []string{
	tableAudit, tableAuditNodes, tableAuthority, tableCluster, tableDeployments, tableFailureMarks, tableJobs, tableJoinTokens, tableKafkaClusters, tableKeptOptions, tableMeta, tableNodes, tablePartitions, tableRequests, tableRuleBook,
	tableRules, tableSubscriptions, tableTokens,
}

// addedTables were added to existing formats.
var addedTables = []string{tableAudit, tableAuditNodes, tableAuthority, tableFailureMarks, tableJobs, tableJoinTokens, tableKafkaClusters, tableKeptOptions, tableSubscriptions, tableTokens}

// Keys in tableCluster, tableAuthority, tableRuleBook and tableMeta.
const (
	clusterKey   = "cluster"
	authorityKey = "authority"
	bookKey      = "book"
	appliedKey   = "applied" // index and term of the last applied entry
	versionKey   = "version"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealed prepends a checksum to a value.
func sealed(value []byte) []byte {
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), crc32.Checksum(value, castagnoli))
	return append(out, value...)
}

// checksumSize is what sealed adds to a value.
const checksumSize = 4

// unsealed verifies the checksum and returns the value.
func unsealed(stored []byte) ([]byte, error) {
	if len(stored) < 4 || binary.BigEndian.Uint32(stored) != crc32.Checksum(stored[4:], castagnoli) {
		return nil, ErrCorrupt
	}
	return stored[4:], nil
}
