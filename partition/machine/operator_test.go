package machine_test

import (
	"strconv"
	"strings"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// operator parses signals and operator commands for the invocation id=.
func (w *world) operator(a arguments) machine.Command {
	id := w.id(a.text("id", ""))
	switch a.d.Cmd {
	case "signal": // signal id=a name=s1, with a result in the input
		c := &machine.Signal{Target: id, ID: signalID(a, a.text("name", ""))}
		if lines := a.lines(); len(lines) > 0 {
			c.Result = optionalResult(a, lines[0])
		}
		return c
	case "kill":
		return &machine.Kill{Target: id}
	case "pause": // pause id=a by=127.0.0.1 reason=maintenance
		return &machine.Pause{Target: id, By: a.text("by", ""), Reason: a.text("reason", "")}
	case "resume": // resume id=a repin=dp_2/5-6
		return &machine.Resume{Target: id, Repin: repin(a)}
	case "purge": // purge id=a journal=yes
		return &machine.Purge{Target: id, Journal: a.text("journal", "") != ""}
	case "restart-as-new": // restart-as-new id=a new=b from=3 keep=yes repin=dp_2/5-6
		return &machine.Restart{
			Target: id, New: w.id(a.text("new", "")), From: uint32(a.number("from", 0)),
			Keep: a.text("keep", "") != "", Repin: repin(a), ServerVersion: "v2",
		}
	case "update": // update id=u of=Counter/k version=…
		service, key, _ := strings.Cut(a.text("of", ""), "/")
		r := &journal.StateReplacement{Version: a.text("version", "")}
		if r.Version == "current" {
			r.Version = w.version(w.owner(id), machine.Object{Service: service, Key: key})
		}
		for _, words := range a.lines() {
			r.State = append(r.State, journal.StatePair{Key: []byte(words[0]), Value: []byte(words[1])})
		}
		return machinetest.Update(id, machine.Object{Service: service, Key: key}, r)
	}
	a.d.Fatalf(a.t, "unknown command %s", a.d.Cmd)
	return nil
}

// version returns the current version of an object's state.
func (w *world) version(p int, o machine.Object) string {
	v := machine.NewStateVersion()
	for e, err := range w.parts[p].state.Values(o) {
		if err != nil {
			panic(err) // tables in memory do not fail
		}
		v.Add(e)
	}
	return v.String()
}

// repin parses "deployment/min-max".
func repin(a arguments) *machine.Repin {
	text := a.text("repin", "")
	if text == "" {
		return nil
	}
	deployment, versions, _ := strings.Cut(text, "/")
	low, high, _ := strings.Cut(versions, "-")
	return &machine.Repin{Deployment: ids.Deployment(deployment), Min: uint8(number(a, low)), Max: uint8(number(a, high))}
}

// signalID parses the name of a signal, or its number after an s.
func signalID(a arguments, word string) journal.NotificationID {
	if word, ok := strings.CutPrefix(word, "c"); ok { // not a signal at all
		if n, err := strconv.ParseUint(word, 10, 32); err == nil {
			return journal.Completion(uint32(n))
		}
	}
	if word, ok := strings.CutPrefix(word, "s"); ok {
		if n, err := strconv.ParseUint(word, 10, 32); err == nil {
			return journal.NumberedSignal(uint32(n))
		}
	}
	return journal.NamedSignal(word)
}

// optionalResult parses a result; no words mean nil, which is void.
func optionalResult(a arguments, words []string) *journal.Result {
	if len(words) == 0 {
		return nil
	}
	r := result(a, words)
	return &r
}
