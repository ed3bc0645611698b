package machine

import (
	"platform/internal/target"
	"platform/partition/journal"
)

// valid reports whether progress keeps the rules. The attempt checks them too and explains
// violations; here they protect the tables and ensure that no step can fail after another
// has taken effect. The rules:
//
//   - a step has what its kind needs, and its payload is well formed;
//   - a command is one that a handler may send, and is allowed for the target;
//   - a step that ends the attempt comes last;
//   - an end has an output before it.
func valid(inv *Invocation, steps []Step) bool {
	output := inv.Output != 0
	for i := range steps {
		s := &steps[i]
		last := i == len(steps)-1
		switch s.Kind {
		case StepCommand:
			if !validCommand(inv.Target.Type, s) {
				return false
			}
			output = output || s.Type == journal.Output
		case StepRunCompletion:
			n, err := journal.ParseNotification(s.Payload)
			if _, ok := n.Result(); err != nil || !ok || n.ID != journal.Completion(s.Completion) {
				return false
			}
		case StepSuspend:
			if !last || s.Await == nil || s.Await.Empty() || s.Await.Depth() > journal.MaxDepth {
				return false
			}
		case StepEnd:
			if !last || !output {
				return false
			}
		case StepRetry:
			if s.Failure == nil {
				return false
			}
		case StepFail:
			if !last || s.Failure == nil {
				return false
			}
		case StepPause, StepYield:
			if !last {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// validCommand reports whether a handler of the type may send the command, and whether it
// is well formed.
func validCommand(of target.Type, s *Step) bool {
	var err error
	switch s.Type {
	case journal.Output:
		_, err = journal.ParseOutput(s.Payload)
	case journal.Run:
		return true
	case journal.GetEagerState, journal.GetEagerStateKeys:
		return of.Keyed()
	case journal.GetLazyState:
		_, err = journal.ParseState(s.Type, s.Payload)
		return err == nil && of.Keyed()
	case journal.GetLazyStateKeys:
		_, err = journal.ParseGetLazyStateKeys(s.Payload)
		return err == nil && of.Keyed()
	case journal.SetState, journal.ClearState:
		_, err = journal.ParseState(s.Type, s.Payload)
		return err == nil && of.WritesState()
	case journal.ClearAllState:
		return of.WritesState()
	case journal.Sleep:
		_, err = journal.ParseSleep(s.Payload)
	case journal.GetPromise, journal.PeekPromise, journal.CompletePromise:
		_, err = journal.ParsePromise(s.Type, s.Payload)
		return err == nil && of.Workflow()
	case journal.SendSignal:
		_, err = journal.ParseSendSignal(s.Payload)
	case journal.CompleteAwakeable:
		_, err = journal.ParseCompleteAwakeable(s.Payload)
	case journal.AttachInvocation, journal.GetInvocationOutput:
		_, err = journal.ParseAttach(s.Type, s.Payload)
	case journal.Call:
		_, err = journal.ParseCall(s.Payload)
		return err == nil && s.Callee != nil && !s.Callee.ID.IsZero()
	case journal.OneWayCall:
		_, err = journal.ParseOneWayCall(s.Payload)
		return err == nil && s.Callee != nil && !s.Callee.ID.IsZero()
	default:
		return false
	}
	return err == nil
}
