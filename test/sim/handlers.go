package sim

import (
	"errors"
	"strings"
	"time"

	"platform/internal/target"
)

// serviceDefinitions are the services and their handlers.
var serviceDefinitions = []struct {
	service  string
	kind     target.Type
	handlers []string
}{
	{"Counter", target.ObjectExclusive, []string{"add"}},
	{"Ledger", target.ObjectExclusive, []string{"stamp"}},
	{"Recorder", target.ObjectExclusive, []string{"record"}},
	{"Relay", target.Service, []string{"run"}},
	{"Lane", target.Service, []string{"hold"}},
	{"Waiter", target.Service, []string{"wait"}},
	{"Sleeper", target.Service, []string{"sleep"}},
	{"Saga", target.Service, []string{"run"}},
	{"Ticket", target.ObjectShared, []string{"issue"}},
	{"Flow", target.WorkflowRun, []string{"run", "decide", "see"}},
}

func (s *Sim) services() map[string]handler {
	return map[string]handler{
		"Counter/add": s.counterAdd, "Ledger/stamp": s.ledgerStamp, "Recorder/record": s.recordOffset, "Relay/run": s.relayRun, "Lane/hold": s.laneHold,
		"Waiter/wait": s.waiterWait, "Sleeper/sleep": s.sleeperSleep, "Saga/run": s.sagaRun,
		"Ticket/issue": s.ticketIssue, "Flow/run": s.flowRun, "Flow/decide": s.flowDecide, "Flow/see": s.flowSee,
	}
}

// counterAdd adds its input to the counter and returns the sum.
func (s *Sim) counterAdd(c *call) ([]byte, error) {
	sum := number(c.get("n")) + number(c.input)
	c.set("n", digits(sum))
	return digits(sum), nil
}

// ledgerStamp appends its input to a list.
func (s *Sim) ledgerStamp(c *call) ([]byte, error) {
	list := append(c.get("ids"), c.input...)
	c.set("ids", append(list, ' '))
	return nil, nil
}

// relayRun uses all journal commands, and sometimes fails before it has stored anything or
// in between. Its input is its name.
func (s *Sim) relayRun(c *call) ([]byte, error) {
	name := string(c.input)
	rng := newRand(s.seed, "relay "+name)
	attempt := s.history.attempt(name)
	if rng.IntN(4) == 0 && attempt == 1 {
		return nil, errors.New("fails at first")
	}
	token := c.run(func() []byte { return s.history.execute(name) })
	gap := []time.Duration{time.Millisecond, 100 * time.Millisecond}[rng.IntN(2)]
	for _, part := range parcels(s.seed, name) { // no other command waits for these
		c.send("Ledger", ledgerKey(rng.IntN(ledgers)), "stamp", []byte(part))
		time.Sleep(time.Duration(rng.Int64N(int64(2 * gap))))
	}
	nap := time.Duration(rng.Int64N(int64(3 * time.Second)))
	at := number(c.run(func() []byte { return digits(s.now().Add(nap).UnixMilli()) }))
	c.send("Ledger", ledgerKey(rng.IntN(ledgers)), "stamp", []byte(name+"/sent"))
	c.sleepUntil(at)
	s.history.checkSleep(name, time.UnixMilli(at))
	if rng.IntN(4) == 0 && s.history.attempt(name+" later") == 1 {
		return nil, errors.New("fails in the middle")
	}
	c.request("Ledger", ledgerKey(rng.IntN(ledgers)), "stamp", []byte(name+"/called"))
	return append([]byte(nil), token...), nil
}

// parcels are entries of the ledgers that a relay writes one after the other.
func parcels(seed uint64, relay string) (names []string) {
	for i := range newRand(seed, "parcels "+relay).IntN(12) {
		names = append(names, relay+"/parcel"+string(digits(int64(i))))
	}
	return names
}

// sleeperSleep sleeps for up to an hour.
func (s *Sim) sleeperSleep(c *call) ([]byte, error) {
	name := string(c.input)
	nap := maxNap/20 + time.Duration(newRand(s.seed, name).Int64N(int64(maxNap/2)))
	s.history.fallAsleep(name)
	at := number(c.run(func() []byte { return digits(s.now().Add(nap).UnixMilli()) }))
	c.sleepUntil(at)
	s.history.checkSleep(name, time.UnixMilli(at))
	s.history.wakeUp(name)
	return nil, nil
}

// laneHold waits for the duration in its input.
func (s *Sim) laneHold(c *call) ([]byte, error) {
	d, err := time.ParseDuration(string(c.input))
	if err != nil {
		return nil, err
	}
	time.Sleep(d) // simulated time
	return nil, nil
}

// waiterWait waits for a signal. Its first attempt fails after a while without storing
// anything, whether or not the signal has arrived.
func (s *Sim) waiterWait(c *call) ([]byte, error) {
	name := string(c.input)
	if s.history.attempt(name) == 1 {
		c.readFor(time.Duration(newRand(s.seed, "waiter "+name).Int64N(int64(2 * time.Second))))
		return nil, errors.New("fails at first")
	}
	c.awaitSignal(signalName)
	return nil, nil
}

// signalName is the signal that Waiter/wait waits for.
const signalName = "go on"

func ledgerKey(i int) string  { return "ledger" + string(digits(int64(i))) }
func counterKey(i int) string { return "counter" + string(digits(int64(i))) }

func fields(list []byte) []string { return strings.Fields(string(list)) }
