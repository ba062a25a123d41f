package bench

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Profile is a CPU profile of the proxy, reduced to a size that fits beside figures.
type Profile struct {
	// CPU is the CPU time in the profile, in seconds.
	CPU float64 `json:"cpu_seconds"`
	// Groups are the shares of groups of functions, the largest first.
	Groups []Share `json:"groups"`
	// Functions are those with the largest times of their own.
	Functions []Share `json:"functions"`
}

// Share is a part of the proxy's time, in percent.
type Share struct {
	Name    string  `json:"name"`
	Percent float64 `json:"percent"`
}

// topFunctions is the number of functions that are listed.
const topFunctions = 5

// reduceProfile reads a profile in the format of pprof.
func reduceProfile(from io.Reader) (*Profile, error) {
	p, err := profile.Parse(from)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	at := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "cpu" && t.Unit == "nanoseconds" })
	if at < 0 {
		return nil, errors.New("read profile: it is none of CPU time")
	}
	var total int64
	groups, functions := make(map[string]int64), make(map[string]int64)
	for _, sample := range p.Sample {
		stack := stackOf(sample)
		value := sample.Value[at]
		total += value
		groups[classify(stack)] += value
		if len(stack) > 0 {
			functions[stack[0]] += value
		}
	}
	r := &Profile{CPU: float64(total) / 1e9, Groups: shares(groups, total), Functions: shares(functions, total)}
	r.Functions = r.Functions[:min(topFunctions, len(r.Functions))]
	return r, nil
}

// stackOf returns the short names of a sample's functions, including inlined ones, the
// innermost first.
func stackOf(s *profile.Sample) []string {
	var stack []string
	for _, location := range s.Location {
		for _, line := range location.Line {
			if line.Function != nil {
				stack = append(stack, shortName(line.Function.Name))
			}
		}
	}
	return stack
}

// shares returns parts as percentages, the largest first.
func shares(parts map[string]int64, total int64) []Share {
	all := make([]Share, 0, len(parts))
	for name, value := range parts {
		all = append(all, Share{Name: name, Percent: 100 * float64(value) / float64(total)})
	}
	slices.SortFunc(all, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// writeDocs writes the profile under its case.
func (p *Profile) writeDocs(page *bytes.Buffer) {
	fmt.Fprintf(page, "\nWhere the proxy's time went (a profile of %.1f s of CPU):\n\n", p.CPU)
	writeShares(page, "part", p.Groups)
	page.WriteByte('\n')
	writeShares(page, "function, itself", p.Functions)
}

func writeShares(page *bytes.Buffer, what string, all []Share) {
	g := &grid{head: []string{what, "share"}, left: 1}
	for _, s := range all {
		g.add(s.Name, Percent.Format(s.Percent))
	}
	g.writeMarkdown(page)
}

// writeProfiles writes the profiles of all cases as text.
func (r *Report) writeProfiles(w io.Writer) {
	head := "\nWhere the proxy's time went in cases that missed a goal\n"
	for i := range r.Cases {
		p := r.Cases[i].Profile
		if p == nil {
			continue
		}
		fmt.Fprintf(w, "%s\n%s, %.1f s of CPU:\n  parts: %s\n  functions: %s\n",
			head, r.Cases[i].Name, p.CPU, listShares(p.Groups), listShares(p.Functions))
		head = ""
	}
}

// listShares formats shares on one line.
func listShares(all []Share) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = fmt.Sprintf("%s %.1f%%", s.Name, s.Percent)
	}
	return strings.Join(words, "; ")
}
