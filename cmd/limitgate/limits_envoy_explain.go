package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// envoyExplainFlags are the flags of an explanation of a folder of Envoy's limits.
type envoyExplainFlags struct {
	domain *string
	asJSON *bool
	folderFlags
}

func (f *envoyExplainFlags) define(fs *flag.FlagSet) {
	f.domain = fs.String("domain", "", "of a folder: the `domain` of the request, which may be left out if there is one")
	f.asJSON = fs.Bool("json", false, "of a folder: print the explanation as JSON")
	f.folderFlags.define(fs)
}

// envoyExplanation says which rules the descriptors of a request meet.
type envoyExplanation struct {
	Domain      string             `json:"domain"`
	Verdict     string             `json:"verdict"`
	Descriptors []envoyDescription `json:"descriptors"`
}

// envoyDescription says which rule a descriptor meets.
type envoyDescription struct {
	Descriptor string `json:"descriptor"`
	// Counted reports that the request is counted by the rule.
	Counted bool   `json:"counted"`
	Rule    string `json:"rule,omitempty"`
	Name    string `json:"name,omitempty"`
	Limit   string `json:"limit,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Why     string `json:"why"`
	Window  string `json:"window,omitempty"`
	Seconds int64  `json:"window_seconds,omitempty"`
	Key     string `json:"key,omitempty"`
	// Example reports that Key has an address, hashed with a secret that was made for this run.
	Example bool `json:"example_hash,omitempty"`

	rule   *rlsconfig.Rule
	hashed bool // Key has an address
}

// explainEnvoy explains a request with descriptors, which are the arguments behind the folder.
func explainEnvoy(env *environment, args []string, flags envoyExplainFlags, secretFile string) int {
	usage := func(text string) int {
		fmt.Fprintf(env.stderr, "limitgate limits explain: %s; limitgate limits explain --help says more\n", text)
		return exitUsage
	}
	if len(args) < 2 {
		return usage("descriptors are needed: limitgate limits explain " + args[0] + " KEY=VALUE,KEY=VALUE")
	}
	var request [][]rlsconfig.Entry
	for _, arg := range args[1:] {
		entries, err := parseDescriptor(arg)
		if err != nil && !strings.Contains(strings.Join(args[1:], ""), "=") {
			if _, _, other := readEnvoy(args[0], flags.folderFlags); other != nil { // such as one with a limits file
				return fail(env, other)
			}
			err = fmt.Errorf("%w; %s is a folder of Envoy's limits: for a tenant name a limits file", err, config.Quote(args[0]))
		}
		if err != nil {
			return usage(err.Error())
		}
		request = append(request, entries)
	}
	c, problems, err := readEnvoy(args[0], flags.folderFlags)
	if err == nil {
		err = problems.Err()
	}
	if err != nil {
		return fail(env, err)
	}
	domain, err := domainOf(c, *flags.domain)
	if err != nil {
		return usage(err.Error())
	}
	secret, err := readOrMakeSecret(secretFile)
	if err != nil {
		return fail(env, err)
	}
	addrs, err := limit.NewAddrHasher(secret, limit.Prefixes{})
	if err != nil {
		return fail(env, err)
	}
	x := explanationOfEnvoy(&c, domain, args[1:], request, addrs.AppendText, time.Now())
	for i := range x.Descriptors {
		x.Descriptors[i].Example = x.Descriptors[i].hashed && secretFile == ""
	}
	if *flags.asJSON {
		encoder := json.NewEncoder(env.stdout)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(x)
		return exitOK
	}
	x.print(env.stdout)
	return exitOK
}

// parseDescriptor parses KEY=VALUE,KEY=VALUE. A backslash takes the meaning of the next character.
func parseDescriptor(arg string) (entries []rlsconfig.Entry, err error) {
	var word strings.Builder
	var e rlsconfig.Entry
	inValue := false
	end := func() error {
		if !inValue {
			return fmt.Errorf("%q is no entry: write KEY=VALUE, with commas between the entries of a descriptor", word.String())
		}
		e.Value = word.String()
		entries = append(entries, e)
		word.Reset()
		e, inValue = rlsconfig.Entry{}, false
		return nil
	}
	for i := 0; i < len(arg); i++ {
		switch c := arg[i]; {
		case c == '\\' && i+1 < len(arg):
			i++
			word.WriteByte(arg[i])
		case c == '=' && !inValue:
			e.Key, inValue = word.String(), true
			word.Reset()
		case c == ',':
			if err := end(); err != nil {
				return nil, err
			}
		default:
			word.WriteByte(c)
		}
	}
	return entries, end()
}

// domainOf returns the domain of a name, or the only one.
func domainOf(c envoyConfig, name string) (*rlsconfig.Domain, error) {
	names := c.Domains()
	switch {
	case name == "" && len(names) == 1:
		return c.Domain(names[0]), nil
	case name == "":
		return nil, fmt.Errorf("there are several domains: say --domain and one of %s", strings.Join(names, ", "))
	case c.Domain(name) == nil:
		return nil, fmt.Errorf("there is no domain %.64q, and so no limit for its requests; the domains are %s%s", name, strings.Join(names, ", "), limit.DidYouMean(name, names))
	}
	return c.Domain(name), nil
}

// explanationOfEnvoy explains the descriptors of a request, which were args.
func explanationOfEnvoy(c *envoyConfig, domain *rlsconfig.Domain, args []string, request [][]rlsconfig.Entry, hash rlsconfig.AddressHasher, now time.Time) *envoyExplanation {
	x := &envoyExplanation{Domain: domain.Name}
	for i, entries := range request {
		found := domain.Explain(entries)
		d := envoyDescription{Descriptor: args[i], rule: found.Rule, Why: found.Reason}
		if r := found.Rule; r != nil {
			d.Rule, d.Limit, d.Mode, d.Why = r.Path, limitOf(r), modeOf(r), c.chosenBy(found.Choices)
			if d.Counted = isLimited(r); d.Counted {
				d.Name, d.Seconds = r.Limit.Name, r.Limit.Unit.Seconds()
				if own := r.Own.Limit; own == nil || own.Params.Algorithm == bucket.AlgorithmFixedWindow {
					begin := now.Unix() - now.Unix()%d.Seconds
					d.Window = fmt.Sprintf("%d s from %s", d.Seconds, time.Unix(begin, 0).UTC().Format(time.RFC3339))
				}
			}
			if d.Counted && r.Limit.RequestsPerUnit > 0 {
				noting := func(dst []byte, value string) []byte {
					d.hashed = true
					return hash(dst, value)
				}
				d.Key = string(limit.AppendDescriptorKey(nil, domain.Slot(r, entries, noting), string(r.AppendCounter(nil, entries, noting))+r.Own.Suffix))
			}
		}
		x.Descriptors = append(x.Descriptors, d)
	}
	x.replace()
	x.Verdict = x.verdict()
	return x
}

// chosenBy describes the descriptors that the entries selected.
func (c *envoyConfig) chosenBy(choices []rlsconfig.Choice) string {
	var all []string
	for _, choice := range choices {
		all = append(all, fmt.Sprintf("%s by its %s, %s", choice.Element, choice.By, c.place(choice.File, choice.Line)))
	}
	return strings.Join(all, "; ")
}

// replace leaves out the limits that others of the request replace.
func (x *envoyExplanation) replace() {
	for i := range x.Descriptors {
		r := x.Descriptors[i].rule
		if r == nil {
			continue
		}
		for j := range x.Descriptors {
			if d := &x.Descriptors[j]; i != j && d.Counted && d.Name != "" && slices.Contains(r.Replaces, d.Name) {
				d.Counted, d.Why = false, "replaced by "+r.Path+"; "+d.Why
				d.Key, d.Window, d.Seconds, d.hashed = "", "", 0, false
			}
		}
	}
}

// verdict describes in a line how the request is decided.
func (x *envoyExplanation) verdict() string {
	var counting []string
	for i := range x.Descriptors {
		d := &x.Descriptors[i]
		if !d.Counted {
			continue
		}
		if d.Mode == "enforce" && d.rule.Limit.RequestsPerUnit == 0 {
			return "denied, since " + d.Rule + " admits nothing"
		}
		counting = append(counting, d.Rule)
	}
	if counting == nil {
		return "admitted: no limit applies"
	}
	return "counted by " + strings.Join(counting, ", ")
}

// print prints the explanation as a table.
func (x *envoyExplanation) print(w io.Writer) {
	fmt.Fprintf(w, "domain %s, %s\n%s\n", x.Domain, table.Counted(len(x.Descriptors), "descriptor"), x.Verdict)
	rows := [][]string{{"", "DESCRIPTOR", "RULE", "LIMIT", "MODE", "WHY", "WINDOW", "KEY"}}
	for i := range x.Descriptors {
		d := &x.Descriptors[i]
		mark := ""
		if d.Counted {
			mark = "*"
		}
		key := d.Key
		if d.Example {
			key += " (example hash)"
		}
		columns := []string{mark, d.Descriptor, d.Rule, d.Limit, d.Mode, d.Why, d.Window, key}
		for i := range columns[2:] {
			if columns[2+i] == "" {
				columns[2+i] = "-"
			}
		}
		rows = append(rows, columns)
	}
	printColumns(w, rows)
}
