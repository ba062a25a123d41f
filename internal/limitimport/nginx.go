package limitimport

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// Nginx imports limit_req_zone and limit_req of an nginx configuration, as
// https://nginx.org/en/docs/http/ngx_http_limit_req_module.html describes them. Locations become
// conditions on the dimension path. The error is one of the syntax.
func Nginx(content []byte) (Result, error) {
	content, err := withoutMark(content)
	if err != nil {
		return Result{}, err
	}
	words, unused, err := readNginxFiles(string(content))
	if err != nil {
		return Result{}, explainNone(content, err)
	}
	if slices.ContainsFunc(words, nginxWord.isOfKubernetes) {
		return Result{}, errors.New("it is an object of Kubernetes and no nginx.conf: nginx -T prints that of an ingress controller, in its container")
	}
	n := newNginx()
	if err := n.file(words); err != nil {
		return Result{}, explainNone(content, err)
	}
	n.remarkConnections()
	n.remarkUnused(unused)
	n.dropUnreached()
	n.dropHostless()
	n.findRedirects()
	n.dropSameServers()
	n.settleServers()
	n.remarkZones()
	if err := n.addLimits(); err != nil {
		return Result{}, err
	}
	return n.result(), nil
}

// explainNone returns the error of a content that could not be read, and says what it is if it is none of nginx.
func explainNone(content []byte, err error) error {
	switch {
	case isTemplate(content, err):
		return fmt.Errorf("%w; %w", err, errNginxTemplate)
	case !errors.Is(err, errNginxEnd):
		return err
	case config.LooksLikeLog(content):
		return config.ErrLog
	case config.LooksLikeCode(content):
		return config.ErrCode
	case limitsFile.Match(content):
		return fmt.Errorf("%w; it looks like a limits file: limitgate limits lint FILE", errNginxEnd)
	case bytes.Contains(content, []byte("_format_version:")):
		return fmt.Errorf("%w; it looks like a configuration of Kong: limitgate limits import kong FILE", errNginxEnd)
	}
	return err
}

// newNginx returns a configuration without directives.
func newNginx() *nginx {
	return &nginx{zones: map[string]*zone{}, maps: map[string]*nginxMap{}, set: map[string]bool{}, connected: map[string]string{}, dimensions: map[string]string{}, labels: names{}, taken: names{"path": 1, "host": 1, "server_name": 1, "location": 1}}
}

// limitsFile matches content of a limits file.
var limitsFile = regexp.MustCompile(`(?m)^(?:default_plan|plans|shared):`)

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
	server  *server // nil outside of a server
	unknown string  // the first word that is not known, or ""
	mistake string  // or ""
	line    int
	said    []string // the remarks on it; if it is not imported the last one alone, which is the reason
	general []string // remarks that hold of the whole configuration, each said once

	imported bool
	limit    imported // what the limits of its zone have in common, if it is imported

	variable  string    // the key, if it is one that a map makes of the address of the client
	exempting *nginxMap // the map, if it leaves that empty for some requests
}

// remark adds a remark on a limit_req.
func (r *limitRequest) remark(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// remarkOnce adds a remark that holds of the whole configuration.
func (r *limitRequest) remarkOnce(format string, args ...any) {
	r.general = append(r.general, fmt.Sprintf(format, args...))
}

// leaveOut drops a limit_req, for a reason that becomes the only remark on it.
func (r *limitRequest) leaveOut(format string, args ...any) {
	r.imported, r.said, r.general = false, nil, nil
	r.remark("limit_req is not imported: "+format, args...)
}

// server is a server block, whose name may stand behind what is in it.
type server struct {
	names   []string
	host    string // its value in conditions, once servers do not change
	listens []listen
}

// listen is an address and a port of a server.
type listen struct {
	at        string
	isDefault bool
}

type location struct {
	modifier, path string
	line           int
}

// nginx is a configuration that is being read.
type nginx struct {
	draft
	zones     map[string]*zone
	requests  []limitRequest
	server    *server
	servers   int
	context   *nginxContext
	contexts  []*nginxContext // all contexts
	answering []answering
	passing   []passing // what sends requests to another location
	unread    bool      // an include that may have limits is not read
	// changesPaths reports that a rewrite changes the path of requests without another location for them.
	changesPaths bool
	keyed        []keyed              // what services send for keys
	serversBy    string               // the dimension of conditions on servers, "" until it is needed
	maps         map[string]*nginxMap // by the variable
	set          map[string]bool      // variables that other directives set
	connected    map[string]string    // the keys of limit_conn_zone, by their zones
	connections  []connections
	labels       names // of locations that no condition on the path can have
	areas        int   // of all sites
	looked       int   // spots that were looked at
	// dimensions are those of variables, and taken are all that are used.
	dimensions map[string]string
	taken      names
}

// answering is a return or rewrite that answers some requests of a context before limit_req count them.
type answering struct {
	context *nginxContext
	line    int
}

// maxNginxDepth bounds the blocks in each other.
const maxNginxDepth = 32

var (
	errNginxEnd   = errors.New("a directive does not end with ; or a block, as in an nginx.conf")
	errNginxBrace = errors.New("a } ends no block")
)

// lineError is an error of a line.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// at returns an error of a line.
func at(line int, err error) error { return &lineError{line, err} }

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
		if end == len(words) {
			return nil, at(words[0].line, errNginxEnd)
		}
		if words[end].is("}") {
			return nil, at(words[0].line, fmt.Errorf("%w: ; is missing behind %s", errNginxEnd, limit.Shorten(words[end-1].text)))
		}
		directive, mark := words[:end], words[end]
		words = words[end+1:]
		if err := cmp.Or(checkEnd(directive), n.checkFilledIn(directive, mark)); err != nil {
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
		return nil, at(line, fmt.Errorf("there are more than %d blocks in each other", maxNginxDepth))
	}
	if len(directive) > 0 && isLua(directive[0].text) && len(words) > 0 && words[0].is("}") {
		n.remarkOnce(line, ofLua)
		return words[1:], nil
	}
	outer, context := n.server, n.context
	defer func() { n.server, n.context = outer, context }()
	if len(directive) == 1 && (directive[0].is("stream") || directive[0].is("mail")) { // it has servers too, and none of HTTP
		n = newNginx()
	}
	if len(directive) > 0 {
		n.remarkMisspelt(directive[0], limitBlocks, otherBlocks)
		n.enter(directive[0].text)
		n.context.line = line
		n.noteSet(directive[1:]) // such as that of split_clients
	}
	switch {
	case len(directive) > 1 && directive[0].text == "location":
		n.context.location, n.context.server = locationOf(directive), n.server
	case len(directive) == 3 && directive[0].text == "map":
		n.mapBlock(line, strings.TrimPrefix(directive[1].text, "$"), directive[2].text)
	case len(directive) == 2 && directive[0].text == "geo":
		n.mapBlock(line, "", directive[1].text)
	case len(directive) == 3 && directive[0].text == "geo" && isAddress(strings.TrimPrefix(directive[1].text, "$")):
		n.mapBlock(line, "", directive[2].text)
	case len(directive) == 1 && directive[0].text == "server":
		n.server = &server{}
		n.context.server = n.server
		n.servers++
	}
	n.context.markOuter()
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
