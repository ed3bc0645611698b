package machine

// Digest compares the tables of the replicas. It changes no table. Replicas compute a digest of
// some rows, as they are right after the log entry of this command (Scan). They compare one that
// they computed earlier with that of a majority of the voters (Agreed). A command can request both.
type Digest struct {
	// Scan selects what to digest; nil: nothing.
	Scan *DigestScan
	// Agreed is the digest of a majority of the voters in an earlier round; nil: nothing.
	Agreed *DigestResult
}

// DigestScan selects rows: those from a key on, as many as the limits allow, at least one
// if there is any.
type DigestScan struct {
	Round uint64 // chosen by the leader, unique within its epoch
	From  []byte // without partition and generation; empty: the first key
	Rows  uint64
	Bytes uint64 // of keys and values
}

// DigestResult is the digest of one scan.
type DigestResult struct {
	Epoch uint64 // of the leader that started the round
	Round uint64
	Rows  uint64 // in the digest
	Next  []byte // first key after the rows; empty: there is none
	Sum   []byte
}

func (*Digest) command() {}
