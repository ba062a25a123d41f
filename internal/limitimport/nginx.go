package limitimport

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Nginx imports limit_req_zone and limit_req of an nginx configuration, as
// https://nginx.org/en/docs/http/ngx_http_limit_req_module.html describes them. Locations become
// conditions on the dimension path. The error is one of the syntax.
func Nginx(content []byte) (Result, error) {
	words, err := nginxWords(string(content))
	if err != nil {
		return Result{}, err
	}
	n := &nginx{zones: map[string]*zone{}, uses: map[string][]int{}, inner: map[innerLimit]bool{}}
	if err := n.file(words); err != nil {
		return Result{}, err
	}
	for _, r := range n.requests {
		if z := n.zones[r.zone]; z != nil && len(r.paths) > 0 && r.mistake == "" {
			n.inner[innerLimit{r.paths[len(r.paths)-1], r.rank, z.key}] = true
		}
	}
	for i := range n.requests {
		// Of a limit that is not imported only the reason is a remark.
		before := len(n.remarks)
		r := &n.requests[i]
		if n.add(r) {
			r.context.imported = cmp.Or(r.context.imported, r.line)
		} else {
			n.remarks = append(n.remarks[:before], n.remarks[len(n.remarks)-1:]...)
		}
	}
	if len(n.requests) == 0 {
		n.remark(1, "there is no limit_req: nothing is imported")
	}
	n.remarkShared()
	n.remarkOuter()
	n.remarkDry()
	return n.result(), nil
}

// zone is a limit_req_zone.
type zone struct {
	key, rate string
	mistake   string // or ""
	line      int
}

// limitRequest is a limit_req in its context.
type limitRequest struct {
	zone    string
	burst   int64
	delays  bool
	context *nginxContext
	paths   []location // from the outermost
	server  *server    // nil outside of a server
	rank    int        // its place among those of its context
	unknown string     // the last word that is not known, or ""
	mistake string     // or ""
	line    int
}

// innerLimit is what a limit_req of a location counts by.
type innerLimit struct {
	location
	rank int
	key  string
}

// place is a location of a server.
type place struct {
	location
	server *server
}

// server is a server block, whose name may stand behind what is in it.
type server struct{ names []string }

type location struct {
	modifier, path string
	line           int
}

// nginx is a configuration that is being read.
type nginx struct {
	draft
	zones    map[string]*zone
	uses     map[string][]int // the lines of the limits that were imported of a zone
	requests []limitRequest
	inner    map[innerLimit]bool // of requests
	paths    []location
	places   []place // all locations
	server   *server
	servers  int
	context  *nginxContext
	contexts []*nginxContext // all contexts
	enforced bool            // limit_req_dry_run is off somewhere
}

// nginxContext is a file or a block.
type nginxContext struct {
	name     string // of a block, such as location
	outer    *nginxContext
	limits   int  // how many limit_req are in it
	imported int  // the line of the first of them that is imported, or 0
	dry      bool // the value of limit_req_dry_run
	dryLine  int  // its line; 0 if the value is that of the outer context
}

// isDry reports whether limit_req_dry_run is on in a context.
func (c *nginxContext) isDry() bool {
	for ; c != nil; c = c.outer {
		if c.dryLine > 0 {
			return c.dry
		}
	}
	return false
}

// maxNginxDepth bounds the blocks in each other.
const maxNginxDepth = 32

var (
	errNginxEnd   = errors.New("a directive does not end with ; or a block, as in an nginx.conf")
	errNginxBrace = errors.New("a } ends no block")
)

// at returns an error of a line.
func at(line int, err error) error { return fmt.Errorf("line %d: %w", line, err) }

// file reads the directives of a file, and the blocks in it.
func (n *nginx) file(words []nginxWord) error {
	n.enter("")
	rest, err := n.directives(words, 0)
	if err == nil && len(rest) > 0 {
		err = at(rest[0].line, errNginxBrace)
	}
	return err
}

// enter begins a context.
func (n *nginx) enter(name string) {
	n.context = &nginxContext{name: name, outer: n.context}
	n.contexts = append(n.contexts, n.context)
}

// directives reads the directives of a file or a block, and returns the words from its end on.
func (n *nginx) directives(words []nginxWord, depth int) (rest []nginxWord, err error) {
	for len(words) > 0 && !words[0].is("}") {
		end := 0
		for end < len(words) && !words[end].is(";") && !words[end].is("{") && !words[end].is("}") {
			end++
		}
		if end == len(words) || words[end].is("}") {
			return nil, at(words[0].line, errNginxEnd)
		}
		directive, mark := words[:end], words[end]
		words = words[end+1:]
		if err := checkEnd(directive); err != nil {
			return nil, err
		}
		if mark.is("{") {
			if words, err = n.block(directive, words, depth+1); err != nil {
				return nil, err
			}
		} else if len(directive) > 0 {
			n.directive(directive)
		}
	}
	return words, nil
}

// block reads the block of a directive, and returns the words behind it.
func (n *nginx) block(directive, words []nginxWord, depth int) (rest []nginxWord, err error) {
	line := 1
	if len(directive) > 0 {
		line = directive[0].line
	}
	if depth > maxNginxDepth {
		return nil, fmt.Errorf("line %d: there are more than %d blocks in each other", line, maxNginxDepth)
	}
	paths, outer, context := n.paths, n.server, n.context
	defer func() { n.paths, n.server, n.context = paths, outer, context }()
	if len(directive) > 0 {
		n.enter(directive[0].text)
	}
	switch {
	case len(directive) > 1 && directive[0].text == "location":
		n.paths = append(n.paths, locationOf(directive))
		n.places = append(n.places, place{locationOf(directive), n.server})
	case len(directive) == 1 && directive[0].text == "server":
		n.server = &server{}
		n.servers++
	}
	if rest, err = n.directives(words, depth); err != nil {
		return nil, err
	}
	if len(rest) == 0 {
		return nil, at(line, fmt.Errorf("the block %s does not end: write } behind it", blockName(directive)))
	}
	return rest[1:], nil
}

// blockName returns the words in front of a block, or those that fit a line.
func blockName(directive []nginxWord) string {
	var words []string
	for _, w := range directive {
		words = append(words, w.text)
	}
	return fmt.Sprintf("%.64q", strings.Join(words, " "))
}

func locationOf(directive []nginxWord) location {
	l := location{path: directive[1].text, line: directive[0].line}
	if len(directive) > 2 {
		l.modifier, l.path = directive[1].text, directive[2].text
	}
	return l
}
