package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// MaxLimitsFileBytes is the maximum size of a limits file: 100,000 tenants with overrides
// fit.
const MaxLimitsFileBytes = 64 << 20

var limitsBounds = bounds{kind: "limits", most: MaxLimitsFileBytes}

// ParseLimits compiles a limits file, YAML or JSON of the same shape. Name is the file's
// name in messages. All mistakes are listed at once, as a *limit.Problems; warnings list
// allowed content that is seldom intended.
func ParseLimits(name string, content []byte, opts limit.CompileOptions) (*limit.Set, []limit.Problem, error) {
	if len(content) > MaxLimitsFileBytes {
		return nil, nil, fmt.Errorf("read limits: %w", limitsBounds.tooLarge(name, int64(len(content))))
	}
	d := &limitsDecoder{doc: limit.Document{File: name}}
	d.decode(content)
	sum := sha256.Sum256(content)
	opts.Version = hex.EncodeToString(sum[:6])
	return d.compile(name, opts)
}

// compile compiles the decoded document. The mistakes of decoding and compiling are
// listed at once.
func (d *limitsDecoder) compile(name string, opts limit.CompileOptions) (*limit.Set, []limit.Problem, error) {
	if d.unreadable {
		return nil, nil, &limit.Problems{File: name, List: d.problems}
	}
	d.doc.Misread = len(d.problems) > 0
	set, warnings, err := limit.Compile(&d.doc, opts)
	warnings = mergeProblems(d.warnings, warnings)
	if len(d.problems) == 0 {
		return set, warnings, err
	}
	// Decoding problems are reported together with those of compiling.
	all := &limit.Problems{File: name, List: d.problems}
	var compiled *limit.Problems
	if !errors.As(err, &compiled) {
		compiled = &limit.Problems{}
	}
	all.List = mergeProblems(d.problems, compiled.List)
	return nil, warnings, all
}

// limitsDecoder turns YAML nodes into a limit.Document. It checks the shape of the file;
// limit.Compile checks the values.
type limitsDecoder struct {
	doc      limit.Document
	problems []limit.Problem
	tenant   limit.TenantSpec     // the tenant that is being compiled
	included int                  // how many limits the includes so far stand for
	expanded map[*yaml.Node]bool  // the lists whose includes are replaced
	places   map[*yaml.Node][]int // of the entries of such a list before that
	listed   map[string]bool      // the lists that are included
	failed   map[failure]bool     // of a file with includes
	warnings []limit.Problem
	empty    string // what belongs into a file without content, unless it is a limits file
	isJSON   bool   // the root of the file is written in braces
	// unreadable is true for a file that is not YAML, or has too many mistakes.
	unreadable bool
}

// maxProblems is the maximum number of decoding mistakes that are listed: more are not
// corrected at once, and each takes more memory than its place in the file.
const maxProblems = 1000

// fail records a mistake. After maxProblems mistakes one more line asks to correct these
// first.
func (d *limitsDecoder) fail(n *yaml.Node, field, format string, args ...any) {
	switch {
	case len(d.problems) > maxProblems || !d.isNew(n, field, format):
		return
	case len(d.problems) == maxProblems:
		d.unreadable = true // the document is not compiled
		field, format, args = "", "more mistakes follow: mend these first", nil
	}
	d.problems = append(d.problems, limit.Problem{Line: n.Line, Field: field, Text: fmt.Sprintf(format, args...)})
}

// failure is a mistake in one node, below the entry of a list.
type failure struct {
	node          *yaml.Node
	field, format string
}

// isNew reports whether a mistake is not recorded yet: several plans may include a list with it.
func (d *limitsDecoder) isNew(n *yaml.Node, field, format string) bool {
	if len(d.places) == 0 {
		return true
	}
	f := failure{n, field[strings.LastIndexByte(field, ']')+1:], format}
	if d.failed[f] {
		return false
	}
	if d.failed == nil {
		d.failed = map[failure]bool{}
	}
	d.failed[f] = true
	return true
}

func (d *limitsDecoder) decode(content []byte) {
	if LooksLikeLog(content) {
		d.unreadable = true
		d.fail(&yaml.Node{Line: 1}, "", isLog)
		return
	}
	if looksLikeUsers.Match(content[:min(len(content), maxCodeBytes)]) {
		d.unreadable = true
		d.fail(&yaml.Node{Line: 1}, "", "this is a file of users: limitgate serve --users %s", plain(d.doc.File))
		return
	}
	if IsNginx(content) {
		d.unreadable = true
		d.fail(&yaml.Node{Line: 1}, "", "this is a configuration of nginx: limitgate limits import nginx %s", plain(d.doc.File))
		return
	}
	root, ok := d.document(content)
	if !ok {
		d.unreadable = true
		return
	}
	if root.Kind != yaml.MappingNode && hasEquals(content) {
		d.unreadable = true
		d.fail(&yaml.Node{Line: 1}, "", "%s", ofEquals)
		return
	}
	if other := d.otherFile(root); other != "" {
		d.unreadable = true
		d.fail(root, "", "%s", other)
		return
	}
	d.indentSections(root)
	mapping(d, &d.doc, documentFields, root, "")
}

// isEnvoys reports whether a mapping is a file of Envoy's limits.
func isEnvoys(root *yaml.Node) bool { return hasKey(root, "domain") && !hasKey(root, "version") }

// IsEnvoys reports whether content is that of a file of Envoy's limits.
func IsEnvoys(content []byte) bool { return isMapping(content, isEnvoys) }

// IsLimits reports whether content is that of a limits file, with limits.
func IsLimits(content []byte) bool { return isMapping(content, hasLimits) }

// hasLimits reports whether a mapping has lists of limits, as a limits file has.
func hasLimits(root *yaml.Node) bool { return hasKey(root, "plans") || hasKey(root, "shared") }

// isMapping reports whether content is a mapping in YAML for which a function is true.
func isMapping(content []byte, is func(root *yaml.Node) bool) bool {
	root := mappingOf(content)
	return root != nil && is(root)
}

// mappingOf returns the mapping in YAML that content is, or nil.
func mappingOf(content []byte) *yaml.Node {
	var doc yaml.Node
	if yaml.Unmarshal(content, &doc) != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	return doc.Content[0]
}

// otherFile returns what to do with a file that has nothing of limits, or "".
func (d *limitsDecoder) otherFile(root *yaml.Node) string {
	if isNull(root) {
		return ""
	}
	if root.Kind == yaml.ScalarNode && strings.HasPrefix(root.Value, table.SnapshotBegin) {
		return "this is a snapshot of a table of limits, and no limits file: limitgate serve --limits dynamodb://TABLE --limits-snapshot " + plain(d.doc.File)
	}
	if root.Kind == yaml.ScalarNode && looksLikeLog.MatchString(root.Value) {
		return isLog
	}
	if root.Kind == yaml.ScalarNode && LooksLikeCode([]byte(root.Value)) {
		return ErrCode.Error()
	}
	if isRules(root) {
		return "this is a list of rules: limitgate limits import rules " + plain(d.doc.File)
	}
	if root.Kind != yaml.MappingNode {
		return noLimits
	}
	if isEnvoys(root) {
		folder := plain(filepath.Dir(d.doc.File))
		return "it is a file of Envoy's limits, whose folder is read: limitgate limits lint " + folder +
			", limitgate serve --rls 127.0.0.1:8081 --rls-config " + folder + ", or limitgate limits import envoy " + folder + " for a limits file"
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if documentFields[root.Content[i].Value] != nil {
			return ""
		}
	}
	if hasKey(root, "apiVersion") && hasKey(root, "kind") {
		return "this is a manifest of Kubernetes: name a file with the limits alone, such as that below data of a ConfigMap"
	}
	if hasKey(root, "_format_version") {
		return "this is a configuration of Kong: limitgate limits import kong " + plain(d.doc.File)
	}
	if isSettings(root) {
		return "this is a settings file: name it by --config"
	}
	return ""
}

const noLimits = "this is no limits file: begin one with version: 1, default_plan: NAME and plans, as in docs/limits.md"

// limitsKey matches a key of a limits file, as it may be written, or shown by a pager or a difference.
var limitsKey = regexp.MustCompile(`(?m)(?:^|[{,])[\s\p{Zs}\x{feff}\d+-]*["']?(?:version|default_plan|plans?|tenants?|shared|lists?|dimensions|max_levels|limits?|id|by|rate|when)["']?\s*[:=：]`)

// yamlBegin matches the beginning of a file of YAML or JSON, behind comments: a name with a colon, a list, or a bracket.
var yamlBegin = regexp.MustCompile(`\A(?:\s*#.*\n|\s*\n)*\s*(?:[{\[-]|["']?[\w.-]+["']?\s*:\s)`)

// mayBeLimits reports whether a file that is not readable as YAML may be meant as limits: it begins like YAML, or has a key of a limits file.
// One of Markdown has such keys in an example. Source code and other bytes than text have advice of their own.
func (d *limitsDecoder) mayBeLimits(content []byte) bool {
	if unreadableLine(content) > 0 || LooksLikeCode(content) {
		return true
	}
	return filepath.Ext(d.doc.File) != ".md" && (limitsKey.Match(content) || yamlBegin.Match(content))
}

// isRules reports whether a document is a list of rules, as limits import reads one: without a key, or below rules.
func isRules(root *yaml.Node) bool {
	if root.Kind == yaml.MappingNode && len(root.Content) == 2 && root.Content[0].Value == "rules" {
		root = root.Content[1]
	}
	return root.Kind == yaml.SequenceNode && len(root.Content) > 0 && (hasKey(root.Content[0], "rule_id") || hasKey(root.Content[0], "match"))
}

// isLog is the error of a log in the place of a limits file.
const isLog = "this is a log, and no limits file: limitgate replay --limits limits.yaml access.log"

// looksLikeLog matches a line of an access log: a request in quotes, as in the common formats.
var looksLikeLog = regexp.MustCompile(`"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) \S+(?: HTTP/[0-9.]+)?"`)

// isSettings reports whether a mapping has a setting with a value of its kind: files of other software have the
// keys limits and http, too.
func isSettings(root *yaml.Node) bool {
	f := settingsFile{table: newTable(&Settings{})}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i].Value, root.Content[i+1]
		if r := f.table.named(name); r != nil && (wrongShape(value, r.value.shape) == "" || value.Kind == yaml.SequenceNode && r.value.shape == stringList) {
			return true
		}
		if f.isSection(name) && value.Kind == yaml.MappingNode && slices.ContainsFunc(f.settingsOf(name), func(in string) bool {
			return hasKey(value, strings.TrimPrefix(in, name+"."))
		}) {
			return true
		}
	}
	return false
}

// document parses content, which must be one YAML document, and returns its root.
func (d *limitsDecoder) document(content []byte) (root *yaml.Node, ok bool) {
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		d.fail(&yaml.Node{Line: 1}, "", "the file is empty: write %s", cmp.Or(d.empty, "version: 1, default_plan: NAME and plans, as docs/limits.md begins, or limitgate limits suggest LOG"))
		return nil, false
	case err != nil && !d.mayBeLimits(content):
		d.fail(&yaml.Node{Line: 1}, "", "%s", noLimits)
		return nil, false
	case err != nil:
		line, message := explainYAML(content, err)
		d.fail(&yaml.Node{Line: line}, "", "%s", message)
		return nil, false
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		d.fail(&yaml.Node{Line: max(more.Line, 1)}, "", "a second YAML document begins: one file is one document, so remove the line with --- or ...")
	}
	if len(doc.Content) != 1 {
		return nil, false
	}
	if line, message := commaMissing(content); message != "" {
		d.fail(&yaml.Node{Line: line}, "", notJSON+"%s", message)
		return nil, false
	}
	root = doc.Content[0]
	d.isJSON = root.Style&yaml.FlowStyle != 0
	d.expandLists(root)
	return root, d.checkAliases(root)
}
