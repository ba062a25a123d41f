package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// usedByLimits is what limits count by or have conditions on.
type usedByLimits struct {
	dims map[string]bool
	ops  []limit.OpUse
}

// opPattern matches the condition on the op among those of a limit.
var opPattern = regexp.MustCompile(`(?:^|, )op: (.*?)(?:, [\w.-]+: |$)`)

// add adds what a limit uses, by its level and its conditions as they are described.
func (used *usedByLimits) add(level, when string) {
	if used.dims == nil {
		used.dims = map[string]bool{}
	}
	level, _, _ = strings.Cut(level, " (group ")
	names := strings.FieldsFunc(level, func(r rune) bool { return r == '|' || r == ',' || r == ' ' })
	for _, name := range names {
		used.dims[name] = true
	}
	op := limit.OpUse{Counts: slices.Contains(names, "op")}
	if m := opPattern.FindStringSubmatch(when); m != nil {
		op.Pattern = m[1]
	}
	if op != (limit.OpUse{}) {
		used.ops = append(used.ops, op)
	}
	for {
		before, after, found := strings.Cut(when, ": ")
		if !found {
			return
		}
		used.dims[before[strings.LastIndexAny(before, ", ")+1:]] = true // also of words in a pattern, which warn of less
		when = after
	}
}

// requestWarnings returns a warning for a tenant and an op or ip that seem to be swapped, for an op in another spelling
// than limits have, and for each dimension of a request that no limit of its tenant uses.
func requestWarnings(req *limit.Request, used *usedByLimits) (warnings []string) {
	var names []string
	for name := range used.dims {
		if !limit.ReservedDim(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if commands.Swapped(req) {
		warnings = append(warnings, commands.SwappedText)
	}
	if commands.AddressFirst(req) {
		warnings = append(warnings, commands.AddressFirstText)
	}
	if meant := limit.MeantOp(req.Op, used.ops); meant != "" {
		warnings = append(warnings, fmt.Sprintf("limits take the op %q for another one than %q: %s", req.Op, meant, limit.OpAdvice))
	}
	for _, d := range req.Dims {
		if !used.dims[d.Name] {
			warnings = append(warnings, fmt.Sprintf("no limit of tenant %s uses the dimension %q%s", table.Printable(req.Tenant), d.Name, limit.DidYouMean(d.Name, names)))
		}
	}
	return warnings
}

// warningsOfSet does the same by the limits of a file.
func warningsOfSet(req *limit.Request, set *limit.Set) []string {
	used := &usedByLimits{}
	for _, l := range set.TenantLimits(req.Tenant) {
		used.add(l.DescribeLevel(), strings.Join(l.When(), ", "))
	}
	return requestWarnings(req, used)
}

// warningsOfReply does the same by a reply of RL.EXPLAIN about the request of args.
func warningsOfReply(args []string, reply any) []string {
	req, err := commands.ParseRequest(ownTenantNamed(args))
	if err != nil {
		return nil
	}
	req.Tenant = fieldText(reply, "tenant")
	used := &usedByLimits{}
	for _, l := range fieldList(reply, "limits") {
		used.add(fieldText(l, "level"), fieldText(l, "when"))
	}
	return requestWarnings(&req, used)
}
