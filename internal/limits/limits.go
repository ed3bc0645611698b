// Package limits defines the maximum sizes along the path of a message, from a request body
// to the frame that carries a log entry to another node.
//
// Each stage adds some bytes to the previous one, so each limit leaves room for that:
//
//	message ≤ log command ≤ log entry ≤ received message
//
// A message that is too large is refused where it enters the server (ingress, invoker),
// with an error for its sender. What was accepted there cannot exceed a limit further down,
// since every later stage would have to retry it indefinitely. The package's tests verify
// the chain with the real encodings.
package limits

const mib = 1 << 20

const (
	// Message is the most that networking.message-size-limit can be set to, and with it
	// the largest request body and the largest message of a service.
	Message = 48 * mib

	// Names bounds the identifying strings of a call: scope, service, key, handler,
	// idempotency key and limit key together. They become part of other invocations'
	// records, in addition to a message of any size.
	Names = 3 * mib

	// Key bounds the key of an object, of state or of a promise, and the name of a signal. They are
	// part of keys of the tables, and Pebble has the first and last key of each file in memory and
	// writes both to its manifest whenever it compacts the file. Names in requests are shorter, as
	// the request line and headers are.
	Key = 64 << 10

	// Pairs bounds the headers of an invocation and the metadata of a failure. An empty one has two
	// bytes in a message and takes more than a hundred in memory, on each replica that applies the
	// command, and again after each restart: a message of any permitted size could take gigabytes, and
	// longer than the watchdog of a replica permits.
	Pairs = 10_000

	// Command is the largest log command that is proposed. It exceeds Message by the
	// names, headers and trace context of an invocation.
	Command = Message + 4*mib

	// StoredMessage is the largest message that may be in an outbox: the first release
	// accepted commands of up to 64 MiB whatever the configuration, and the messages
	// that such a command caused are still delivered.
	StoredMessage = 66 * mib

	// StoredCommand is the largest command of any origin.
	StoredCommand = StoredMessage + 1*mib

	// Entry is the largest log entry, which holds at least one command. Entries of the
	// first release are smaller.
	Entry = StoredCommand + 1*mib

	// Receive is the largest gRPC message that a node accepts. An append with one entry
	// is never larger.
	Receive = 128 * mib

	// FirstReceive is what nodes of the first release accept. While the cluster may have
	// such nodes, no entry larger than an entry of one Command is written.
	FirstReceive = 64 * mib

	// Response is the largest request or response between partitions, which is sent in
	// pieces. It exceeds every command and every record.
	Response = 128 * mib
)

const (
	// ProgressBatch is the size from which the steps of an attempt are proposed as
	// several commands. One step can be larger.
	ProgressBatch = 1 * mib

	// DeliverBatch is the size from which the messages of an outbox are delivered in
	// several commands. One message can be larger.
	DeliverBatch = 1 * mib
)

// stateEntry is what an entry of an object's state counts in addition to the bytes of its key and value. Handlers
// that list keys, and the replicas that apply that, need time and memory for each entry, however short it is.
const stateEntry = 64

// StateEntry returns what an entry counts for the limit of an object's state, from the lengths of its key
// and value.
func StateEntry(key, value int) int { return key + value + stateEntry }

// journalEntry is what an entry of a journal counts in addition to its payload: the memory of a journal of a million
// short entries is mostly that.
const journalEntry = 64

// JournalEntry returns what an entry counts for the memory of an attempt, from the length of its payload.
func JournalEntry(payload int) int { return payload + journalEntry }
