package limitimport

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

var (
	errNginxUTF16    = errors.New("it is text in UTF-16: want UTF-8 (iconv -f UTF-16 -t UTF-8 makes that)")
	errNginxTemplate = errors.New("it is a template: fill it in first, and import what that makes")
	byteOrderMark    = []byte("\xef\xbb\xbf")
	// templateMark matches the marks of templates of Go, Jinja and ERB.
	templateMark = regexp.MustCompile(`\{\{-?\s*[.$]|\{\{-? \w|\{%-?\s|<%`)
	// nginxPlaceholder matches a variable as a shell has it, in the place of text where nginx has no variables.
	nginxPlaceholder = regexp.MustCompile(`\$\{\w{1,64}\}`)
)

// withoutMark returns a configuration without its byte order mark, or an error for one in UTF-16.
func withoutMark(content []byte) ([]byte, error) {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return nil, errNginxUTF16
	}
	return bytes.TrimPrefix(content, byteOrderMark), nil
}

// isTemplate reports whether the line of an error, or the one behind it, has a mark of a template.
func isTemplate(content []byte, err error) bool {
	of, ok := errors.AsType[*lineError](err)
	if !ok {
		return false
	}
	lines := bytes.Split(content, []byte("\n"))
	first, last := min(max(of.line-1, 0), len(lines)), min(of.line+1, len(lines))
	return templateMark.Match(bytes.Join(lines[first:last], []byte("\n")))
}

// checkFilledIn returns an error if the path of a location or the name of a server has a placeholder without quotes.
func (n *nginx) checkFilledIn(directive []nginxWord, mark nginxWord) error {
	isLocation := len(directive) > 1 && directive[0].is("location") && mark.is("{")
	if !isLocation && !(len(directive) > 1 && directive[0].is("server_name") && n.server != nil) {
		return nil
	}
	for _, w := range directive[1:] {
		if w.quoted || strings.HasPrefix(w.text, "~") {
			return nil // as it is, or a regular expression
		}
		if name := nginxPlaceholder.FindString(w.text); name != "" {
			return at(w.line, fmt.Errorf("%s is a placeholder: fill the template in first, such as by envsubst", name))
		}
	}
	return nil
}

// limitDirectives are the directives that an import reads, and otherDirectives those with names that are like them.
var (
	limitDirectives = []string{"limit_req", "limit_req_zone", "limit_req_dry_run", "limit_conn", "limit_conn_zone"}
	otherDirectives = []string{"limit_req_status", "limit_req_log_level", "limit_conn_status", "limit_conn_log_level", "limit_conn_dry_run", "limit_rate", "limit_rate_after", "limit_except"}
	limitBlocks     = []string{"location", "server", "http"}
	otherBlocks     = []string{"http2", "http3"}
)

// remarkMisspelt remarks on a directive that is most likely one of those that an import reads.
func (n *nginx) remarkMisspelt(w nginxWord, meant, others []string) {
	name := strings.ReplaceAll(strings.ToLower(w.text), "-", "_")
	if w.quoted || slices.Contains(meant, w.text) || slices.Contains(others, w.text) || len(name) < len("http") {
		return
	}
	near := nearest(name, meant)
	if slices.Contains(meant, name) {
		near = name
	}
	if near != "" {
		n.remark(w.line, "nginx has no directive %s, and it is not imported%s", limit.Shorten(w.text), question(near))
	}
}

// nginxVariables are variables that nginx has, of those that are like the ones of keys.
// Source: https://nginx.org/en/docs/varindex.html
var nginxVariables = strings.Fields(`ancient_browser args binary_remote_addr body_bytes_sent bytes_received bytes_sent connection connection_requests connection_time
	content_length content_type date_gmt date_local document_root document_uri geoip_city geoip_country_code geoip_org host hostname http2 http3 https
	invalid_referer is_args is_request_port limit_conn_status limit_rate limit_req_status msec nginx_version pid pipe protocol proxy_add_x_forwarded_for proxy_host
	proxy_port proxy_protocol_addr proxy_protocol_port proxy_protocol_server_addr proxy_protocol_server_port query_string quic realip_remote_addr realip_remote_port
	realpath_root remote_addr remote_port remote_user request request_body request_body_file request_completion request_filename request_id request_length
	request_method request_port request_time request_uri scheme secure_link secure_link_expires server_addr server_name server_port server_protocol session_time
	slice_range spdy ssl_cipher ssl_client_cert ssl_client_fingerprint ssl_client_i_dn ssl_client_s_dn ssl_client_serial ssl_client_verify ssl_protocol
	ssl_server_name ssl_session_id status time_iso8601 time_local uid_got uid_set upstream_addr uri`)

// mostVariables bounds the variables that a name is compared with.
const mostVariables = 1000

// meantVariable returns the variable that one of a key is most likely a misspelling of, or "".
func (n *nginx) meantVariable(name string) string {
	if n.maps[name] != nil || n.set[name] || slices.Contains(nginxVariables, name) || isRequestField(name) || len(name) < len("uri") || len(n.maps) > mostVariables {
		return ""
	}
	known := slices.Clone(filledVariables)
	for variable := range n.maps {
		known = append(known, variable)
	}
	slices.Sort(known)
	return nearest(name, known)
}

// ofOuter returns what follows of a limit_req that is left out where an outer block has one, or "".
func (r *limitRequest) ofOuter() string {
	for c := r.context.outer; c != nil; c = c.outer {
		if c.limits > 0 {
			return "; no limit_req of an outer block applies in its place, as in nginx"
		}
	}
	return ""
}
