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

// usedByLimits has the dimensions and the ops that limits count by or have conditions on.
type usedByLimits struct {
	dims map[string]bool
	ops  []limit.OpUse
}

// addDims adds the dimensions of a limit, by its level and its conditions as they are described.
func (used usedByLimits) addDims(level, when string) {
	for _, name := range dimsOfLevel(level) {
		used.dims[name] = true
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

// dimsOfLevel returns the dimensions of a level as it is described: "tenant, user|ip (group day)".
func dimsOfLevel(level string) []string {
	level, _, _ = strings.Cut(level, " (group ")
	return strings.FieldsFunc(level, func(r rune) bool { return r == '|' || r == ',' || r == ' ' })
}

// opPattern matches the condition on the op among those of a limit.
var opPattern = regexp.MustCompile(`(?:^|, )op: (.*?)(?:, [\w.-]+: |$)`)

// describedUse returns the use that a limit makes of the op, by its level and its conditions as they are described.
func describedUse(level, when string) limit.OpUse {
	use := limit.OpUse{Counts: slices.Contains(dimsOfLevel(level), "op")}
	if m := opPattern.FindStringSubmatch(when); m != nil {
		use.Pattern = m[1]
	}
	return use
}

// requestWarnings returns a warning for a tenant and an op or ip that seem to be swapped, for an op in another spelling
// than limits have, and for each dimension of a request that no limit of its tenant uses.
func requestWarnings(req *limit.Request, used usedByLimits) (warnings []string) {
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
	if used.dims["ip"] && commands.AddressFirst(req) {
		warnings = append(warnings, commands.AddressFirstText)
	}
	if commands.AddressAsOp(req) {
		warnings = append(warnings, commands.AddressAsOpText)
	}
	if s, found := limit.SpellingOf(req.Op, used.ops); found {
		warnings = append(warnings, fmt.Sprintf("limits take the op %s for another one than %s: %s", limit.Quote(req.Op), limit.Quote(s.Meant), s.Reason))
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
	used := usedByLimits{dims: map[string]bool{}}
	for _, l := range set.TenantLimits(req.Tenant) {
		used.addDims(l.DescribeLevel(), strings.Join(l.When(), ", "))
		used.ops = append(used.ops, l.OpUse())
	}
	warnings := requestWarnings(req, used)
	if small := strings.ToLower(req.Tenant); !set.Lists(req.Tenant) && set.Lists(small) {
		warnings = append(warnings, fmt.Sprintf("tenant %s is not listed, and another one than tenant %s, which is", table.Printable(req.Tenant), table.Printable(small)))
	}
	return warnings
}

// warningsOfReply does the same by a reply of RL.EXPLAIN about the request of args.
func warningsOfReply(args []string, reply any) []string {
	req, err := commands.ParseRequest(ownTenantNamed(args))
	if err != nil {
		return nil
	}
	req.Tenant = fieldText(reply, "tenant")
	used := usedByLimits{dims: map[string]bool{}}
	for _, l := range fieldList(reply, "limits") {
		level, when := fieldText(l, "level"), fieldText(l, "when")
		used.addDims(level, when)
		if fieldText(l, "mode") != limit.ModeOff.String() {
			used.ops = append(used.ops, describedUse(level, when))
		}
	}
	return requestWarnings(&req, used)
}
