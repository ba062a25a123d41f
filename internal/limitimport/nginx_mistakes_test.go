package limitimport_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/limitimport"
	"github.com/limitgate/limitgate/limit"
)

// TestNginxMistakes: the error of a configuration, or the remarks on it, say what is wrong and what to do.
func TestNginxMistakes(t *testing.T) {
	const zone = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;"
	for name, row := range map[string]struct{ content, says, not string }{
		"mark of its order":     {"\xef\xbb\xbf# limits\nhttp { " + zone + " limit_req zone=a; }", "64 bits", "missing"},
		"UTF-16":                {"\xff\xfeh\x00t\x00t\x00p\x00", "iconv -f UTF-16", ""},
		"a template of Helm":    {"http {\n limit_req_zone $binary_remote_addr zone=a:1m rate={{ .Values.rate }}r/s;\n}", "fill it in first", ""},
		"a template of Jinja":   {"http {\n {% if limit %}\n" + zone + "\n {% endif %}\n}", "fill it in first", ""},
		"a missing ; alone":     {"http {\n " + strings.TrimSuffix(zone, ";") + "\n}", "; is missing", "template"},
		"a placeholder":         {"http { server { location ${PREFIX}/ { limit_req zone=a; } } }", "line 1: ${PREFIX} is a placeholder", ""},
		"a name of a server":    {"http { server { server_name ${HOST}; } }", "${HOST} is a placeholder", ""},
		"no placeholder":        {"http { " + zone + " server { location ~ ^/a/\\d${x} { limit_req zone=a; } location /$metadata { limit_req zone=a; } } }", "", "placeholder"},
		"a zone that is unread": {"http { include conf.d/z.conf; " + zone + " server { limit_req zone=a; location /b { limit_req zone=b; } } }", "no limit_req_zone b in the files that are read: import what nginx -T prints, which has all files; no limit_req of an outer block", "the zones are"},
		"a log_format with <%":  {"http {\n log_format a '<% $uri %>';\n access_log /x\n " + zone + "\n}", "; is missing", "template"},
		"a quoted location":     {"http { " + zone + " server { location \"/a/${b}/\" { limit_req zone=a; } } }", "", "placeholder"},
		"an entry of a map":     {"http { map $uri $x { location ${host}; } " + zone + " limit_req zone=a; }", "", "placeholder"},
		"limit_conn":            {"http { server { limit_conn addr 7; } limit_conn_zone $binary_remote_addr zone=addr:10m; }", "limit_conn is not imported: services hold slots by RL.ACQUIRE, and give them back by RL.RELEASE; for these write into a plan {id: conn-addr, by: [tenant, ip], algorithm: concurrency, slots: 7}", "limit_conn_zone"},
		"variables of others":   {"http { split_clients $remote_addr $uris { * a; } auth_request_set $hosts x; limit_req_zone $uris zone=a:1m rate=1r/s; limit_req_zone $hosts zone=b:1m rate=1r/s; limit_req zone=a; limit_req zone=b; }", "DIM uris", "did you mean"},
	} {
		result, err := limitimport.Nginx([]byte(row.content))
		text := fmt.Sprint(err)
		for _, r := range result.Remarks {
			text += "\n" + r.Text
		}
		if !strings.Contains(text, row.says) || row.not != "" && strings.Contains(text, row.not) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestConnectionsTogether: the limits to write for limit_conn of several zones and locations may stand in one plan.
func TestConnectionsTogether(t *testing.T) {
	const conf = `http {
		limit_conn_zone $binary_remote_addr zone=ip:10m;
		limit_conn_zone $server_name zone=server:10m;
		limit_conn_zone $host zone=host:10m;
		server {
			limit_conn ip 10; limit_conn server 100; limit_conn host 50;
			location /a { limit_conn ip 3; limit_conn host 7; }
			location /b { limit_conn ip 5; limit_conn server 100; }
		}
	}`
	result, _ := limitimport.Nginx([]byte(conf)) // which has no limit_req
	var limits strings.Builder
	same := 0
	for i, r := range result.Remarks {
		if found := regexp.MustCompile(`{id: .*slots: \d+}`).FindString(r.Text); found != "" {
			limits.WriteString("    - " + strings.Replace(found, "op: OP", fmt.Sprintf("op: GET /%d", i), 1) + "\n")
		} else if strings.Contains(r.Text, "the limit for line 6, which is of the same zone, holds here too") {
			same++
		}
	}
	file := "version: 1\ndefault_plan: p\nplans:\n  p:\n" + limits.String()
	if _, _, err := config.ParseLimits("f", []byte(file), limit.CompileOptions{}); err != nil || strings.Count(file, "id: ") != 6 || same != 1 {
		t.Errorf("%d of the same zone, %v in %s", same, err, file)
	}
}
