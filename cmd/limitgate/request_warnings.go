package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// dimsOfLimits are the dimensions that limits count by or have conditions on.
type dimsOfLimits map[string]bool

// add adds those of a limit, by its level and its conditions as they are described.
func (used dimsOfLimits) add(level, when string) {
	level, _, _ = strings.Cut(level, " (group ")
	for name := range strings.FieldsFuncSeq(level, func(r rune) bool { return r == '|' || r == ',' || r == ' ' }) {
		used[name] = true
	}
	for {
		before, after, found := strings.Cut(when, ": ")
		if !found {
			return
		}
		used[before[strings.LastIndexAny(before, ", ")+1:]] = true // also of words in a pattern, which warn of less
		when = after
	}
}

// requestWarnings returns a warning for a tenant and an op that seem to be swapped, and for each dimension of a
// request that no limit of its tenant uses.
func requestWarnings(req *limit.Request, used dimsOfLimits) (warnings []string) {
	var names []string
	for name := range used {
		if !limit.ReservedDim(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if commands.Swapped(req) {
		warnings = append(warnings, commands.SwappedText)
	}
	for _, d := range req.Dims {
		if !used[d.Name] {
			warnings = append(warnings, fmt.Sprintf("no limit of tenant %s uses the dimension %q%s", table.Printable(req.Tenant), d.Name, limit.DidYouMean(d.Name, names)))
		}
	}
	return warnings
}

// warningsOfSet does the same by the limits of a file.
func warningsOfSet(req *limit.Request, set *limit.Set) []string {
	used := dimsOfLimits{}
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
	used := dimsOfLimits{}
	for _, l := range fieldList(reply, "limits") {
		used.add(fieldText(l, "level"), fieldText(l, "when"))
	}
	return requestWarnings(&req, used)
}
