package rlsconfig

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

const (
	// maxFileBytes bounds a file, whose nodes take some 20 times its size while it is read.
	maxFileBytes = 10 << 20
	// maxNodes bounds the nodes that are read of a file, with those that aliases repeat.
	maxNodes = 1 << 22
	// maxNesting bounds the nesting of mappings and lists: two for each level of descriptors, and
	// the levels of metadata.
	maxNesting = 2*maxDepth + 72
)

// File is a file of a configuration. Its name is for messages.
type File struct {
	Name    string
	Content []byte
}

// Parse compiles files, each of which describes one domain. The Config is nil if there is any
// mistake, and the problems are all mistakes and warnings in the order of the files.
func Parse(files []File, opts Options) (*Config, Problems) {
	r := &report{}
	docs := make([]*document, len(files))
	for i, f := range files {
		docs[i] = readFile(f, r)
	}
	return compile(docs, opts, r)
}

// readFile returns the document of a file.
func readFile(f File, r *report) *document {
	at := place{file: f.Name, line: 1}
	doc := &document{at: at, domain: text{broken: true}}
	if len(f.Content) > maxFileBytes {
		r.fail(at, "the file has %d bytes, and the largest may have %d", len(f.Content), maxFileBytes)
		return doc
	}
	if kind, command := kindOf(f.Content); kind != "" {
		r.fail(at, "this is %s, which belongs in no folder of Envoy's limits: limitgate %s %s", kind, command, limit.Quote(f.Name))
		return doc
	}
	var root, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(f.Content))
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		r.fail(at, "the file is empty: write domain and descriptors, or remove it")
		return doc
	case err != nil:
		line, message := config.ExplainYAML(f.Content, err)
		r.fail(at.on(line), "%s", message)
		return doc
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		r.warn(at.on(max(more.Line, 1)), "a second YAML document begins: only the first of a file is read")
	}
	if len(root.Content) > 0 && root.Content[0].Kind == yaml.ScalarNode && !isNull(root.Content[0]) {
		r.fail(at, "it is text, and has no limits: every file of the folder is read, unless its name begins with a dot: move it elsewhere")
		return doc
	}
	doc.domain.broken = false
	y := &yamlReader{report: r}
	for _, n := range root.Content {
		y.root(n, doc)
	}
	return doc
}

// kindOf recognizes a file of another kind, without the word domain.
func kindOf(content []byte) (kind, command string) {
	if bytes.Contains(content, []byte("domain")) {
		return "", ""
	}
	return config.KindOf(content)
}

// yamlReader turns the nodes of a file into a document, and reports mistakes of its shape.
type yamlReader struct {
	*report
	nodes   int // read so far
	nesting int // of the present node
}

// follow returns the node that a node stands for.
func (y *yamlReader) follow(n *yaml.Node, at place) *yaml.Node {
	if y.nodes++; y.nodes > maxNodes {
		y.stop(at.on(n.Line), "the file has more than %d values, with those that aliases repeat", maxNodes)
	}
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// enter begins a mapping or a list, whose end is leave, and reports whether it is within bounds.
func (y *yamlReader) enter(at place) bool {
	if y.nesting++; y.nesting > maxNesting {
		y.stop(at, "the file nests deeper than %d: perhaps an alias stands for a part of itself", maxNesting)
	}
	return !y.stopped
}

func (y *yamlReader) leave() { y.nesting-- }

// shortRate matches a rate as limits files of Limitgate have it.
var shortRate = regexp.MustCompile(`^([0-9]+)/(second|minute|hour|day|week|month|year)$`)

// exampleOf returns what a mapping looks like at a place where a scalar is.
func exampleOf(path, scalar string) string {
	if !strings.HasSuffix(path, "rate_limit") {
		return "KEY: VALUE"
	}
	if m := shortRate.FindStringSubmatch(scalar); m != nil {
		return "{unit: " + m[2] + ", requests_per_unit: " + m[1] + "}"
	}
	return "{unit: minute, requests_per_unit: 3}"
}

// entries calls read for each entry of a mapping. A merged mapping is read where it stands, so that
// its entries replace those before it and those behind it replace its own, as in
// envoyproxy/ratelimit.
func (y *yamlReader) entries(n *yaml.Node, at place, read func(key, value *yaml.Node)) {
	n = y.follow(n, at)
	at = at.on(n.Line)
	if n.Kind != yaml.MappingNode {
		if !isNull(n) {
			y.fail(at, "keys with values belong here: %s", exampleOf(at.field, n.Value))
		}
		return
	}
	defer y.leave()
	if !y.enter(at) {
		return
	}
	lines := map[string]int{} // of the keys so far
	for i := 0; i+1 < len(n.Content) && !y.stopped; i += 2 {
		key, value := y.follow(n.Content[i], at), n.Content[i+1]
		if key.Tag == "!!merge" {
			y.merge(value, at, lines, read)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			y.fail(at.on(key.Line), "a key belongs here, not a list or a mapping")
			continue
		}
		if line := lines[key.Value]; line > 0 {
			y.warn(at.in(plain(key.Value)).on(n.Content[i].Line), "it is already there, on line %d: remove one of them", line)
		}
		lines[key.Value] = n.Content[i].Line
		read(key, value)
	}
}

// merge reads the entries of a merged mapping, or of a list of them, of which earlier ones win.
func (y *yamlReader) merge(n *yaml.Node, at place, lines map[string]int, read func(key, value *yaml.Node)) {
	merged := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		merged = n.Content
	}
	for i := range merged {
		m := merged[len(merged)-1-i]
		if y.follow(m, at).Kind != yaml.MappingNode {
			y.fail(at.on(m.Line), "<< merges a mapping, or a list of mappings")
			continue
		}
		y.entries(m, at, func(key, value *yaml.Node) {
			if line := lines[key.Value]; line > 0 {
				y.warn(at.in(plain(key.Value)).on(line), "the mapping that << merges on line %d replaces it: move << before it", m.Line)
			}
			read(key, value)
		})
	}
}

// elements calls read for each element of a list.
func (y *yamlReader) elements(n *yaml.Node, at place, read func(n *yaml.Node, at place)) {
	n = y.follow(n, at)
	at = at.on(n.Line)
	if n.Kind != yaml.SequenceNode {
		if !isNull(n) {
			y.fail(at, "a list of mappings belongs here: - KEY: VALUE")
		}
		return
	}
	defer y.leave()
	if !y.enter(at) {
		return
	}
	for i, element := range n.Content {
		if y.stopped {
			return
		}
		at := at.element(i).on(element.Line)
		if y.follow(element, at).Kind != yaml.MappingNode {
			y.fail(at, "keys with values belong here: - KEY: VALUE")
			continue
		}
		read(element, at)
	}
}
