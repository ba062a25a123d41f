package limit

import (
	"fmt"
	"strings"
)

// Document is a limits file as it was written: text with line numbers. Package config
// reads it, and Compile interprets it.
type Document struct {
	File        string
	Version     Text
	DefaultPlan Text
	MaxLevels   Text
	Dimensions  []DimensionSpec
	Plans       []PlanSpec
	Shared      []RuleSpec
	// Tenants calls each for one tenant after the other, of which there may be many. The
	// TenantSpec is valid until each returns. Nil means no tenants.
	Tenants func(each func(*TenantSpec))
	// Misread reports that something could not be read, which is reported already: limits that are missing may be there.
	Misread bool
	// Where names a line in messages, for a document that was not read from one file; nil for "line 7".
	Where func(line int) string
}

// At names a line in a message.
func (d *Document) At(line int) string {
	if d.Where != nil {
		return d.Where(line)
	}
	return fmt.Sprintf("line %d", line)
}

// Text is a scalar and its line; line 0 means that it is absent.
type Text struct {
	Value string
	Line  int
}

// Set reports whether the file has the scalar.
func (t Text) Set() bool { return t.Line > 0 }

// DimensionSpec declares a dimension and, optionally, all values it can have, or that names of buckets have
// a hash of its value.
type DimensionSpec struct {
	Name   Text
	Values []Text
	Hash   Text // true or false
}

// PlanSpec is a named list of limits.
type PlanSpec struct {
	Name   Text
	Limits []RuleSpec
}

// TenantSpec assigns a plan to a tenant and overrides limits of it; the ID of an override
// is that of the limit it changes.
type TenantSpec struct {
	Name      Text
	Plan      Text
	Overrides []RuleSpec
}

// RuleSpec is one limit as it is written, or the fields of one that an override changes.
type RuleSpec struct {
	Line  int
	ID    Text
	By    []Text
	BySet bool
	When  []WhenSpec
	Group Text
	Rate  Text
	// RateUnread reports that the rate or the slots are there and could not be read, which is reported already.
	RateUnread bool
	// Misread reports that a key or a value could not be read, which is reported already: what is missing may be there.
	Misread   bool
	Slots     Text
	Burst     Text
	Algorithm Text
	Mode      Text
	Enforce   Text // a percentage
	Warn      Text // a percentage
	Action    Text
	OnError   Text
	Missing   Text
	Timezone  Text
	Cost      Text
	MaxCost   Text
	Lease     LeaseSpec
	Store     Text
	Replaces  []Text
}

// WhenSpec is one condition of a limit.
type WhenSpec struct{ Dim, Pattern Text }

// Problem is a mistake in a limits file, or a warning for its author.
type Problem struct {
	Line  int
	Where string // names the line, if Document.Where does
	Field string
	Text  string // the mistake and its correction
	// Redis reports that the problem matters only if the store is Redis.
	Redis bool
	// Note reports that nothing is wrong: it is an effect of the file that people overlook.
	Note bool
}

// Problems lists all mistakes in a file. It is an error.
type Problems struct {
	File string
	List []Problem
}

// Error returns one line for each problem, as Format does.
func (p *Problems) Error() string {
	var b strings.Builder
	for i, problem := range p.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(problem.Format(p.File))
	}
	return b.String()
}

// Format returns the problem as file:line: field: text, with Where in the place of the line if that is set.
func (p Problem) Format(file string) string {
	at := fmt.Sprintf("%s:%d: ", file, p.Line)
	if p.Where != "" {
		at = file + ": " + p.Where + ": "
	}
	if p.Field != "" {
		at += p.Field + ": "
	}
	return at + p.Text
}
