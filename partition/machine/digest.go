package machine

// Digest compares the tables of the replicas. It changes no table: replicas take a
// digest of some rows as they are right after the log entry of this command, or compare
// one that they took earlier with what a majority of the voters agreed on, or both.
type Digest struct {
	// Scan is what to take a digest of; nil: nothing.
	Scan *DigestScan
	// Agreed is what a majority of the voters found in an earlier round; nil: nothing.
	Agreed *DigestResult
}

// DigestScan selects rows: those from a key on, as many as the limits allow, at least
// one if there is any.
type DigestScan struct {
	Round uint64 // chosen by the leader, unique within its epoch
	From  []byte // without partition and generation; empty: the first key
	Rows  uint64
	Bytes uint64 // of keys and values
}

// DigestResult is the digest of one scan.
type DigestResult struct {
	Epoch uint64 // of the leader that began the round
	Round uint64
	Rows  uint64 // in the digest
	Next  []byte // first key behind the rows; empty: there is none
	Sum   []byte
}

func (*Digest) command() {}
