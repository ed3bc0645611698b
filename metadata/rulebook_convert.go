package metadata

import (
	"fmt"

	"platform/flowcontrol"
	pb "platform/proto/metadata"
)

func bookToProto(b *flowcontrol.Book) *pb.RuleBook { return &pb.RuleBook{Version: b.Version} }

func ruleToProto(r *flowcontrol.Rule) *pb.Rule {
	out := &pb.Rule{
		Pattern: r.Pattern.String(), Concurrency: r.Limits.Concurrency, QueueLimit: r.Limits.QueueLimit,
		Description: r.Description, Disabled: r.Disabled, Version: r.Version, ModifiedAtMs: r.ModifiedAt,
	}
	if rate := r.Limits.Rate; rate != nil {
		out.RateCount, out.RatePeriodMs = rate.Count, rate.Period.Milliseconds()
	}
	return out
}

// ruleFromProto converts and validates a pb.Rule.
func ruleFromProto(r *pb.Rule) (flowcontrol.Rule, error) {
	pattern, err := flowcontrol.ParsePattern(r.GetPattern())
	if err != nil {
		return flowcontrol.Rule{}, err
	}
	rule := flowcontrol.Rule{
		Pattern: pattern, Limits: flowcontrol.Limits{Concurrency: r.GetConcurrency(), QueueLimit: r.QueueLimit},
		Description: r.GetDescription(), Disabled: r.GetDisabled(), Version: r.GetVersion(), ModifiedAt: r.GetModifiedAtMs(),
	}
	if r.GetRateCount() != 0 || r.GetRatePeriodMs() != 0 {
		rule.Limits.Rate = &flowcontrol.Rate{Count: r.GetRateCount(), Period: milliseconds(r.GetRatePeriodMs())}
	}
	return rule, rule.Limits.Check()
}

func rulesToProto(rules []flowcontrol.Rule) *pb.RuleList {
	out := &pb.RuleList{Rules: make([]*pb.Rule, len(rules))}
	for i := range rules {
		out.Rules[i] = ruleToProto(&rules[i])
	}
	return out
}

func rulesFromProto(list *pb.RuleList) ([]flowcontrol.Rule, error) {
	rules := make([]flowcontrol.Rule, len(list.GetRules()))
	for i, r := range list.GetRules() {
		var err error
		if rules[i], err = ruleFromProto(r); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

func patternsToProto(patterns []flowcontrol.Pattern) *pb.PatternList {
	out := &pb.PatternList{Patterns: make([]string, len(patterns))}
	for i, p := range patterns {
		out.Patterns[i] = p.String()
	}
	return out
}

func patternsFromProto(list *pb.PatternList) ([]flowcontrol.Pattern, error) {
	patterns := make([]flowcontrol.Pattern, len(list.GetPatterns()))
	for i, text := range list.GetPatterns() {
		var err error
		if patterns[i], err = flowcontrol.ParsePattern(text); err != nil {
			return nil, err
		}
	}
	return patterns, nil
}

func putRulesToProto(cmd *putRules) *pb.PutRules {
	out := &pb.PutRules{Changes: make([]*pb.RuleChange, len(cmd.changes)), Renew: cmd.renew}
	for i, c := range cmd.changes {
		rule := flowcontrol.Rule{Pattern: c.Pattern, Limits: c.Limits, Description: c.Description, Disabled: c.Disabled}
		out.Changes[i] = &pb.RuleChange{
			Rule: ruleToProto(&rule), Precondition: uint32(c.Precondition.Kind), ExpectedVersion: c.Precondition.Version,
		}
	}
	return out
}

func putRulesFromProto(body *pb.PutRules) (*putRules, error) {
	cmd := &putRules{changes: make([]flowcontrol.Change, len(body.GetChanges())), renew: body.GetRenew()}
	for i, c := range body.GetChanges() {
		rule, err := ruleFromProto(c.GetRule())
		if err != nil {
			return nil, err
		}
		precondition, err := preconditionFromProto(c.GetPrecondition(), c.GetExpectedVersion())
		if err != nil {
			return nil, err
		}
		cmd.changes[i] = flowcontrol.Change{
			Pattern: rule.Pattern, Limits: rule.Limits, Description: rule.Description, Disabled: rule.Disabled, Precondition: precondition,
		}
	}
	return cmd, nil
}

func deleteRulesToProto(cmd *deleteRules) *pb.DeleteRules {
	out := &pb.DeleteRules{Removals: make([]*pb.RuleRemoval, len(cmd.removals))}
	for i, r := range cmd.removals {
		out.Removals[i] = &pb.RuleRemoval{
			Pattern: r.Pattern.String(), Precondition: uint32(r.Precondition.Kind), ExpectedVersion: r.Precondition.Version,
		}
	}
	return out
}

func deleteRulesFromProto(body *pb.DeleteRules) (*deleteRules, error) {
	cmd := &deleteRules{removals: make([]flowcontrol.Removal, len(body.GetRemovals()))}
	for i, r := range body.GetRemovals() {
		pattern, err := flowcontrol.ParsePattern(r.GetPattern())
		if err != nil {
			return nil, err
		}
		precondition, err := preconditionFromProto(r.GetPrecondition(), r.GetExpectedVersion())
		if err != nil {
			return nil, err
		}
		cmd.removals[i] = flowcontrol.Removal{Pattern: pattern, Precondition: precondition}
	}
	return cmd, nil
}

// preconditionFromProto rejects unknown kinds: ignoring them would make an unrequested
// change.
func preconditionFromProto(kind, version uint32) (flowcontrol.Precondition, error) {
	if kind > uint32(flowcontrol.DoesNotExist) {
		return flowcontrol.Precondition{}, fmt.Errorf("precondition %d is unknown", kind)
	}
	return flowcontrol.Precondition{Kind: flowcontrol.PreconditionKind(kind), Version: version}, nil
}
