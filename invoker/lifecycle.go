package invoker

import "fmt"

// state is the state of a task and of its attempt, which exists from loading to reporting.
type state uint8

const (
	none       state = iota // in transitions: the event has no effect
	waiting                 // for a slot
	loading                 // the attempt reads the journal; it has sent nothing
	streaming               // the journal is sent; both directions are open
	halfClosed              // the endpoint was asked to suspend; what it still sends is stored
	refused                 // half-closed, after an error status whose body is being read
	finishing               // the last step of the attempt is being stored
	failing                 // the attempt failed; its outstanding proposals are being stored
	reporting               // a step of the server that ends the attempts is being stored: pause, failure, yield
	backingOff              // until the next attempt is due
	gone                    // nothing is left to do
	stateCount
)

var stateNames = [stateCount]string{"none", "waiting", "loading", "streaming", "half-closed", "refused", "finishing", "failing", "reporting", "backing off", "gone"}

func (s state) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// open reports whether an attempt is open: what the endpoint sends matters.
func (s state) open() bool { return loading <= s && s <= refused }

// settling reports whether the outcomes of proposals decide the next state.
func (s state) settling() bool { return finishing <= s && s <= reporting }

// event is something that may change the state of a task.
type event uint8

const (
	granted  event = iota // a slot
	replayed              // the journal has been written to the stream
	suspend               // the endpoint is to suspend: it is idle, does not read, or expects the whole request first
	refuse                // the response has an error status
	finish                // the endpoint sent the last step
	fail                  // the attempt failed
	retry                 // the next attempt is delayed: the last one failed, and has no pending proposals
	report                // the same: none follows
	yield                 // the invocation is to pause
	unstored              // the server's own step was rejected
	due                   // the backoff has ended
	stored                // the last step is stored
	drop                  // the task is obsolete: leadership lost, replaced, or unknown to the partition
	eventCount
)

// action is what the task does during a transition.
type action uint8

const (
	closeWrite  action = 1 << iota // end the request body
	endStream                      // stop using the stream: orderly if the endpoint ended the attempt, otherwise by a reset
	resetStream                    // reset the stream
	unwatch                        // stop checking the attempt's deadlines
)

type transition struct {
	to state
	do action
}

// transitions is the lifecycle of a task. An event without an entry has no effect. A
// transition to backingOff or gone releases the attempt and its slot, see task.endLocked.
var transitions = [stateCount][eventCount]transition{
	waiting: {
		granted: {to: loading},
		retry:   {to: backingOff}, // before its first attempt, see delaySpin
		yield:   {to: reporting},
		drop:    {to: gone},
	},
	loading: {
		replayed: {to: streaming},
		yield:    {to: reporting, do: resetStream},
		fail:     {to: failing, do: endStream | unwatch},
		drop:     {to: gone, do: resetStream | unwatch},
	},
	streaming: {
		suspend: {to: halfClosed, do: closeWrite},
		yield:   {to: halfClosed, do: closeWrite},
		refuse:  {to: refused, do: closeWrite},
		finish:  {to: finishing, do: endStream | unwatch},
		fail:    {to: failing, do: endStream | unwatch},
		drop:    {to: gone, do: resetStream | unwatch},
	},
	halfClosed: {
		refuse: {to: refused},
		finish: {to: finishing, do: endStream | unwatch},
		fail:   {to: failing, do: endStream | unwatch},
		drop:   {to: gone, do: resetStream | unwatch},
	},
	refused: {
		fail: {to: failing, do: endStream | unwatch},
		drop: {to: gone, do: resetStream | unwatch},
	},
	finishing: {
		stored: {to: gone},
		fail:   {to: failing, do: endStream},
		drop:   {to: gone, do: resetStream},
	},
	failing: {
		retry:  {to: backingOff},
		report: {to: reporting},
		stored: {to: gone}, // the last step, stored before the proposal of an earlier one was rejected
		drop:   {to: gone, do: resetStream},
	},
	reporting: {
		stored:   {to: gone},
		unstored: {to: backingOff},
		drop:     {to: gone, do: resetStream},
	},
	backingOff: {
		due:   {to: waiting},
		yield: {to: reporting},
		drop:  {to: gone},
	},
}
