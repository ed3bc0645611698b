package partition

import (
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

const (
	// restartBytes and restartEntries bound what a restart copies, since it is one command.
	restartBytes   = 64 << 20
	restartEntries = 100_000
	// restartScan bounds the bytes between these entries and their last completion.
	restartScan = 256 << 20
)

// copies returns approximately how many bytes an operator's command copies, or the code with
// which it is refused because they are too many.
func (l *leadership) copies(c machine.Command) (sum int, refusal machine.Code, err error) {
	restart, ok := c.(*machine.Restart)
	if !ok || restart.From == 0 {
		return 0, machine.OK, nil
	}
	view := l.p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(restart.Target)
	if err != nil || inv == nil || restart.From >= inv.Length {
		return 0, machine.OK, err // the machine refuses it
	}
	if restart.From >= restartEntries {
		return 0, machine.TooLarge, nil
	}
	if sum, err = journalSize(view, inv.ID, restart.From+1, restartBytes); sum > restartBytes {
		return 0, machine.TooLarge, nil
	}
	if err != nil {
		return 0, machine.OK, err
	}
	later, ok, err := laterCompletions(view, inv, restart.From, restartBytes-sum)
	if err == nil && !ok {
		return 0, machine.TooLarge, nil
	}
	return sum + later, machine.OK, err
}

// laterCompletions returns the bytes of the completions, behind an entry of a journal, of the
// commands up to it. ok is false if they have more than most, or if too much lies in between.
func laterCompletions(view *store.View, inv *machine.Invocation, last uint32, most int) (sum int, ok bool, err error) {
	wanted, err := openCompletions(view, inv.ID, last)
	if err != nil {
		return 0, false, err
	}
	for id := range wanted { // otherwise the machine refuses the restart without reading more
		if how, err := view.Notified(inv.ID, journal.Completion(id)); err != nil || how == journal.Pending {
			return 0, true, err
		}
	}
	read := 0
	for i := last + 1; i < inv.Length && len(wanted) > 0; i++ {
		e, err := view.Entry(inv.ID, i)
		if err != nil {
			return 0, false, err
		}
		if read += len(e.Payload); i-last > restartEntries || read > restartScan {
			return 0, false, nil
		}
		if id, ok := completionID(e); ok && wanted[id] {
			delete(wanted, id)
			if sum += len(e.Payload); sum > most {
				return 0, false, nil
			}
		}
	}
	return sum, true, nil
}

// openCompletions returns the completions of the commands in the first entries of a journal that
// are not among these entries.
func openCompletions(view *store.View, id ids.Invocation, last uint32) (map[uint32]bool, error) {
	open := map[uint32]bool{}
	for i := range last + 1 {
		e, err := view.Entry(id, i)
		if err != nil {
			return nil, err
		}
		if done, ok := completionID(e); ok {
			delete(open, done)
		} else if e.Type.IsCommand() {
			for _, requested := range journal.CompletionsOf(e) {
				open[requested] = true
			}
		}
	}
	return open, nil
}

// completionID returns the completion ID of an entry that is a completion.
func completionID(e journal.Entry) (uint32, bool) {
	if e.Type.IsCommand() {
		return 0, false
	}
	n, err := journal.ParseNotification(e.Payload)
	return n.ID.Index, err == nil && !n.ID.Signal
}

// journalSize returns the bytes of the first entries of a journal, or a number above most if
// they have more than that.
func journalSize(view *store.View, id ids.Invocation, entries uint32, most int) (sum int, err error) {
	for i := range entries {
		n, err := view.EntrySize(id, i)
		if err != nil {
			return 0, err
		}
		if sum += n; sum > most {
			break
		}
	}
	return sum, nil
}
