package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// withNames returns a reply with maps that have texts as keys.
func withNames(reply any) any {
	switch v := reply.(type) {
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[fmt.Sprint(key)] = withNames(value)
		}
		return out
	case []any:
		for i := range v {
			v[i] = withNames(v[i])
		}
	}
	return reply
}

// fieldOf returns a value of a map, or nil.
func fieldOf(reply any, name string) any {
	m, _ := reply.(map[string]any)
	return m[name]
}

// fieldText returns a value of a map as text; empty if there is none.
func fieldText(reply any, name string) string {
	v := fieldOf(reply, name)
	if v == nil {
		return ""
	}
	if number, ok := v.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return table.Printable(fmt.Sprint(v)) // keys of other limiters' commands may be any bytes
}

// fieldList returns a value of a map as a list.
func fieldList(reply any, name string) []any {
	all, _ := fieldOf(reply, name).([]any)
	return all
}

// warningsOfReply returns the warnings about a request or a tenant in a reply of RL.EXPLAIN or RL.LIMITS.
func warningsOfReply(reply any) (warnings []string) {
	for _, text := range fieldList(reply, "warnings") {
		warnings = append(warnings, table.Printable(fmt.Sprint(text)))
	}
	return warnings
}

// explanationOfReply describes a reply of RL.EXPLAIN. The arguments are those of the request.
func explanationOfReply(args []string, reply any) *explanation {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(fieldText(reply, name), 10, 64)
		return n
	}
	cost := int64(1)
	if len(args) > 3 {
		if n, err := strconv.ParseInt(args[3], 10, 64); err == nil {
			cost = n
		}
	}
	x := &explanation{
		tenant: fieldText(reply, "tenant"), plan: fieldText(reply, "plan"), unlisted: fieldText(reply, "listed") == "0", version: fieldText(reply, "version"), running: true,
		verdict: verdictOfReply(reply, number("retry_after_ms"), cost),
	}
	short := func(description string) string {
		word, _, _ := strings.Cut(description, ":")
		return word
	}
	for _, l := range fieldList(reply, "limits") {
		row := explainedLimit{
			applies: fieldText(l, "applies") == "1", id: fieldText(l, "id"), level: fieldText(l, "level"), rate: fieldText(l, "rate"), algorithm: fieldText(l, "algorithm"),
			mode: fieldText(l, "mode"), onError: short(fieldText(l, "on_error")), store: short(fieldText(l, "store")), lease: short(fieldText(l, "lease")), why: fieldText(l, "reason"),
			remaining: fieldText(l, "remaining"), limit: fieldText(l, "capacity"), source: fieldText(l, "source"), node: fieldText(l, "node"), key: strings.TrimSpace(fieldText(l, "key") + " " + fieldText(l, "field")),
		}
		if row.lease == "" {
			row.lease = "-"
		}
		if countsNothing(row.rate) {
			row.algorithm, row.store = "-", "-"
		}
		row.wouldDeny = row.refuses() || row.watches() && fieldText(l, "allowed") == "0"
		x.limits = append(x.limits, row)
	}
	x.verdict = cmp.Or(x.refusal(fieldText(reply, "limit_id")), x.verdict)
	x.addAllowing()
	x.addShadow()
	return x
}

// waitOfReply returns the ms until a limit has the units of the request by a reply of RL.EXPLAIN, or 0 if it has
// them, is not in the reply or never has them. It is 0, too, where the store has not decided all: a limit that fails
// closed then has a short wait of its own.
func waitOfReply(reply any, id string) int64 {
	switch fieldText(reply, "source") {
	case limit.SourcePolicy.String(), limit.SourceBackstop.String():
		return 0
	}
	for _, l := range fieldList(reply, "limits") {
		if fieldText(l, "id") == id && fieldText(l, "applies") == "1" {
			wait, _ := strconv.ParseInt(fieldText(l, "wait_ms"), 10, 64)
			return max(0, wait)
		}
	}
	return 0
}

// countsNothing reports whether the rate of a limit is an action.
func countsNothing(rate string) bool {
	return rate == limit.ActionDeny.String() || rate == limit.ActionAllow.String()
}

// printLimits prints a reply of RL.LIMITS.
func printLimits(w io.Writer, _ []string, reply any) {
	fmt.Fprintf(w, "limits version %s, from %s\n", fieldText(reply, "version"), fieldText(reply, "source"))
	if tenant := fieldText(reply, "tenant"); tenant != "" && fieldText(reply, "listed") == "0" {
		meant := ""
		if tenant == "reload" { // the other commands are words that tenants have
			meant = " (the word is the name of a tenant here; " + otherCommands[tenant] + ")"
		}
		fmt.Fprintf(w, "tenant %s is not in it: its plan is the default one, %s%s\n", tenant, fieldText(reply, "plan"), meant)
	}
	columns := []string{"limit", "from", "level", "when", "rate", "algorithm", "mode", "on_error"}
	if source := fieldText(reply, "source"); source != config.SampleName && !isTable(source) { // whose lines are in no file of the user
		columns = append(columns, "line")
	}
	limits := fieldList(reply, "limits")
	for _, l := range limits {
		row, ok := l.(map[string]any)
		if !ok {
			continue
		}
		row["limit"] = row["id"]
		if countsNothing(fieldText(l, "rate")) {
			row["algorithm"] = "-"
		}
	}
	printTable(w, limits, columns, "none")
}

// printTop prints a reply of RL.TOP.
func printTop(w io.Writer, _ []string, reply any) {
	for _, part := range []struct{ title, list string }{
		{"most checks, in the last 10 to 20 s", "hot"}, {"most denials", "denied"}, {"most denials by shadow limits, if they were enforced", "would_deny"},
	} {
		fmt.Fprintf(w, "%s:\n", part.title)
		printTable(w, fieldList(reply, part.list), []string{"per_second", "limit_id", "bucket"}, "none")
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "operations:")
	printTable(w, fieldList(reply, "operations"), []string{"per_second", "denied_per_second", "would_deny_per_second", "op"}, "none")
	if fieldText(reply, "at_least") == "1" {
		fmt.Fprintln(w, "\nmore buckets or operations have checks than are counted at once: the rates are estimates that may be too low")
	}
}

// printDenied prints a reply of RL.DENIED.
func printDenied(w io.Writer, _ []string, reply any) {
	all, _ := reply.([]any)
	for _, row := range all {
		if m, ok := row.(map[string]any); ok {
			if at, err := strconv.ParseInt(fieldText(row, "at_ms"), 10, 64); err == nil {
				m["at"] = time.UnixMilli(at).Format("15:04:05.000")
			}
			m["left"] = fieldText(row, "remaining") + " of " + fieldText(row, "capacity")
			if fieldText(row, "limit_id") == "" {
				m["limit_id"], m["left"] = "--backstop-total-rate", "-"
			}
			if fieldText(row, "source") == limit.SourcePolicy.String() {
				m["left"] = "-" // it fails closed: no bucket was read
			}
			if fieldText(row, "retry_after_ms") == "-1" {
				m["retry_after_ms"] = "never"
			}
			m["limits"] = "in use"
			if fieldText(row, "trial") == "1" {
				m["limits"] = "on trial"
			}
		}
	}
	printTable(w, all, []string{"at", "limit_id", "plan", "mode", "limits", "tenant", "op", "cost", "left", "retry_after_ms", "source", "address", "key"}, "none")
}

// printShards prints a reply of RL.CONFIG SHARDS.
func printShards(w io.Writer, _ []string, reply any) {
	all, _ := reply.([]any)
	if len(all) == 1 && fieldText(all[0], "addr") == "" {
		fmt.Fprintln(w, fieldText(all[0], "error"))
		return
	}
	printTable(w, all, []string{"addr", "breaker", "next_probe_ms", "failing_ms", "error"}, "none: the buckets are in the memory of this limitgate")
}

// printTable prints the values of maps in columns, or a text if there are none.
func printTable(w io.Writer, rows []any, columns []string, none string) {
	if len(rows) == 0 {
		fmt.Fprintln(w, none)
		return
	}
	out := [][]string{strings.Split(strings.ToUpper(strings.Join(columns, "\t")), "\t")}
	for _, row := range rows {
		values := make([]string, len(columns))
		for i, name := range columns {
			values[i] = fieldText(row, name)
		}
		out = append(out, values)
	}
	printColumns(w, out)
}
