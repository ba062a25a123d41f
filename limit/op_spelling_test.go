package limit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// patterns returns the uses of limits with conditions on the op.
func patterns(texts ...string) (uses []limit.OpUse) {
	for _, text := range texts {
		uses = append(uses, limit.OpUse{Pattern: text})
	}
	return uses
}

// TestSpellingOf: another spelling of an op is found with its difference, and another op is none.
func TestSpellingOf(t *testing.T) {
	conditions := patterns("POST /exports", "POST /v1/pay*", "export", "/pkg.Service/Do", "GET /A/", "DELETE *", "put /odd")
	counted := []limit.OpUse{{Counts: true}, {Pattern: "POST /exports", Counts: true}}
	const (
		small, noMethod, query, url = "its method is in small letters", "it has no method", "it has a query", "it is a URL"
		blank, slash, letters       = "one blank belongs behind its method", "it ends with a slash, or lacks one", "small letters and capitals differ"
	)
	for _, row := range []struct {
		uses               []limit.OpUse
		op, meant, of, why string
	}{
		{conditions, "post /exports", "POST /exports", "POST /exports", small},
		{conditions, "POST /Exports", "POST /exports", "POST /exports", letters},
		{conditions, "POST  /exports", "POST /exports", "POST /exports", blank},
		{conditions, "POST:/exports", "POST /exports", "POST /exports", blank},
		{conditions, "POST exports", "POST /exports", "POST /exports", "its path does not begin with a slash"},
		{conditions, "POST /exports/", "POST /exports", "POST /exports", slash},
		{conditions, "POST /exports?x=1", "POST /exports", "POST /exports", query},
		{conditions, "/exports", "POST /exports", "POST /exports", noMethod},
		{conditions, "https://api.example.com/exports?x=1", "POST /exports", "POST /exports", url},
		{conditions, "post https://api.example.com/exports", "POST /exports", "POST /exports", url},
		{conditions, "post /v1/payments/7", "POST /v1/payments/7", "POST /v1/pay*", small},
		{conditions, "/v1/payments?x", "POST /v1/payments", "POST /v1/pay*", noMethod},
		{conditions, "Export", "export", "export", letters},
		{conditions, "POST /pkg.Service/Do", "/pkg.Service/Do", "/pkg.Service/Do", "it has a method, and the condition has none"},
		{conditions, "get /a", "GET /A/", "GET /A/", small},
		{conditions, "delete /x", "DELETE /x", "DELETE *", small},
		{patterns("GET /*", "POST /exports"), "/exports", "POST /exports", "POST /exports", noMethod},
		{patterns("POST /exp*", "POST /*"), "post /exports", "POST /exports", "POST /exp*", small},
		{patterns("POST /*"), "post /x", "POST /x", "POST /*", small},
		{patterns("GET /search?type=img*", "GET /search"), "get /search", "GET /search", "GET /search", small},

		{conditions, "POST /exports ", "POST /exports", "POST /exports", "it ends with a blank"},
		{conditions, " POST /exports", "POST /exports", "POST /exports", "it begins with a blank"},
		{conditions, "POST /exports HTTP/1.1", "POST /exports", "POST /exports", "it has the protocol of a request line behind its path"},
		{conditions, "post /v1/payments/7 HTTP/2.0", "POST /v1/payments/7", "POST /v1/pay*", small},
		{patterns("POST /login "), "POST /login", "POST /login ", "POST /login ", "the limit has a blank behind its op: remove it there"},
		{patterns(" POST /login"), "POST /login", " POST /login", " POST /login", "the limit has a blank in front of its op: remove it there"},
		{patterns("POST /login HTTP/1.1"), "POST /login", "POST /login HTTP/1.1", "POST /login HTTP/1.1", "the limit has the protocol of a request line behind its path: remove it there"},
		{patterns("POST login"), "POST /login", "POST login", "POST login", "the path of the limit does not begin with a slash: write one there"},
		{patterns("POST log*"), "POST /login", "POST login", "POST log*", "the path of the limit does not begin with a slash: write one there"},
		{patterns("export"), "export ", "export", "export", "it ends with a blank"},

		{conditions, "", "", "", ""},
		{conditions, "POST /exports", "", "", ""},
		{conditions, "POST /v1/pay?x", "", "", ""},
		{[]limit.OpUse{{Pattern: "POST /v1/pay*", Counts: true}, {Pattern: "POST /v1/pay*"}}, "POST /v1/pay?id=1", "POST /v1/pay", "", "it has a query"},
		{[]limit.OpUse{{Pattern: "POST /v1/pay?id=*", Counts: true}}, "POST /v1/pay?id=1", "", "", ""},
		{[]limit.OpUse{{Pattern: "POST /v1/pay*", Counts: true}}, "POST /v1/pay", "", "", ""},
		{conditions, "GET /exports", "", "", ""},
		{conditions, "POST /exports/7", "", "", ""},
		{conditions, "POST /export", "", "", ""},
		{conditions, "GET /x?y=1", "", "", ""},
		{conditions, "put /odd", "", "", ""},
		{conditions, "get /x", "", "", ""},
		{conditions, "exports", "", "", ""},
		{conditions, "https://", "", "", ""},
		{conditions, "http://host", "", "", ""},
		{conditions, "POST", "", "", ""},
		{conditions, "/", "", "", ""},
		{patterns("POST /*"), "/helloworld.Greeter/SayHello", "", "", ""},
		{patterns("GET /v1/*", "/v1/*"), "/v1/x", "", "", ""},
		{patterns("get*", "Get*"), "GetObject", "", "", ""},
		{patterns("GET /a", "GET /*"), "GET /A", "", "", ""},
		{patterns("GET /search?type=img*"), "GET /search", "", "", ""},
		{patterns("GET /search?q=2", "GET /search"), "GET /search", "", "", ""},
		{patterns("delete:*"), "Delete:Users", "", "", ""},
		{patterns("/*"), "s3://bucket/x", "", "", ""},
		{patterns("/orders"), "kafka://topic/orders", "", "", ""},

		{counted, "get /x", "GET /x", "", small},
		{counted, "GET /x?y=1", "GET /x", "", query},
		{counted, "GET  /x", "GET /x", "", blank},
		{counted, "GET/x", "GET /x", "", blank},
		{counted, "GET /x ", "GET /x", "", "it ends with a blank"},
		{counted, "GET /x HTTP/1.1", "GET /x", "", "it has the protocol of a request line behind its path"},
		{counted, "GET users", "", "", ""},
		{conditions, "POST/exports", "POST /exports", "POST /exports", blank},
		{counted, "GET /x", "", "", ""},
		{counted, "/x", "", "", ""},
		{counted, "job", "", "", ""},
		{counted, "get/report", "", "", ""},
		{counted, "delete/users/7", "", "", ""},
		{counted[1:], "get /x", "", "", ""},
		{counted[1:], "post /exports", "POST /exports", "POST /exports", small},
	} {
		s, found := limit.SpellingOf(row.op, row.uses)
		if want := (limit.OpSpelling{Meant: row.meant, Condition: row.of, Reason: row.why}); s != want || found != (row.meant != "") {
			t.Errorf("%q: got %q, %v, want %q", row.op, s, found, want)
		}
	}
}

// TestSpellingOfTemplates: a parameter in another style or of another name, and a value in the place of one, are found.
func TestSpellingOfTemplates(t *testing.T) {
	for _, row := range []struct {
		uses               []limit.OpUse
		op, meant, of, why string
	}{
		{patterns("GET /v1/users/{id}"), "GET /v1/users/:id", "GET /v1/users/{id}", "GET /v1/users/{id}", "it has the parameter :id in place of {id}"},
		{patterns("GET /a/{b}/c/{d}"), "GET /a/<int:b>/c/[d]", "GET /a/{b}/c/{d}", "GET /a/{b}/c/{d}", "it has the parameter <int:b> in place of {b}"},
		{patterns("GET /v1/users/{id}"), "GET /v1/users/{user_id}", "GET /v1/users/{id}", "GET /v1/users/{id}", "it has the parameter {user_id} in place of {id}"},
		{patterns("GET /v1/users/{id}", "GET /v1/users/{user_id}"), "GET /v1/users/{user_id}", "", "", ""},
		{patterns("GET /v1/users/{id}"), "GET /v1/users/{id}/{post}", "", "", ""},
		{patterns("GET /v1/users/{id}"), "GET /v1/users/7", "GET /v1/users/{id}", "GET /v1/users/{id}", "it has a value in place of {id}: send the template of the route"},
		{patterns("GET /v1/users/:id/posts"), "GET /v1/users/0a1b-22/posts", "GET /v1/users/:id/posts", "GET /v1/users/:id/posts", "it has a value in place of :id: send the template of the route"},
		{patterns("GET /v1/users/{id}*"), "GET /v1/users/7/posts", "GET /v1/users/{id}", "GET /v1/users/{id}*", "it has a value in place of {id}: send the template of the route"},
		{patterns("GET /v1/users/{id}/*"), "GET /v1/users/7/posts", "GET /v1/users/{id}/", "GET /v1/users/{id}/*", "it has a value in place of {id}: send the template of the route"},
		{patterns("/v1/users/{id}"), "/v1/users/7", "/v1/users/{id}", "/v1/users/{id}", "it has a value in place of {id}: send the template of the route"},
		{patterns("GET /v1/*", "GET /v1/users/{id}"), "GET /v1/users/7", "GET /v1/users/{id}", "GET /v1/users/{id}", "it has a value in place of {id}: send the template of the route"},
		{patterns("GET /v1/users/{id}"), "GET /v1/users/me", "", "", ""},
		{patterns("GET /{version}/users"), "GET /v2/users", "", "", ""},
		{patterns("GET /v1/users/{id}"), "GET /v1/users/7/posts", "", "", ""},
		{patterns("GET /v1/users/{id}"), "POST /v1/users/7", "", "", ""},
		{patterns("GET /v1/users/{id}", "GET /v1/users/7"), "GET /v1/users/7", "", "", ""},
		{patterns("GET /v1/users/{id}/*"), "GET /v1/users/7", "", "", ""},
		{patterns("GET /v1/users/{id}"), "GET /v1/teams/:id", "", "", ""},
		{patterns("GET /v1/users/{id}", "GET /v1/users/:id"), "GET /v1/users/:id", "", "", ""},
	} {
		s, found := limit.SpellingOf(row.op, row.uses)
		if want := (limit.OpSpelling{Meant: row.meant, Condition: row.of, Reason: row.why}); s != want || found != (row.meant != "") {
			t.Errorf("%q: got %q, %v, want %q", row.op, s, found, want)
		}
	}
}

// FuzzSpellingOf: the condition that a spelling is of holds for the op that is meant, and not for the one sent.
func FuzzSpellingOf(f *testing.F) {
	for _, op := range []string{"get /x", "POST://", "://", "GET", " :/", "PoST /v1/é?", "/V1/x/", "http://h/v1/x"} {
		f.Add(op, "POST /v1/x*")
		f.Add(op, "GET /x")
	}
	f.Fuzz(func(t *testing.T, op, pattern string) {
		s, found := limit.SpellingOf(op, []limit.OpUse{{Pattern: pattern}, {Counts: true}})
		if !found {
			return
		}
		holds := func(op string) bool {
			text, isPrefix := strings.CutSuffix(s.Condition, "*")
			return text == op || isPrefix && strings.HasPrefix(op, text)
		}
		if s.Meant == op || s.Reason == "" || s.Condition != "" && (!holds(s.Meant) || holds(op)) {
			t.Errorf("%q is said to mean %q, for %q", op, s, pattern)
		}
	})
}

// BenchmarkSpellingOf measures the comparison of the op with the most segments with as many conditions as are compared.
func BenchmarkSpellingOf(b *testing.B) {
	for name, format := range map[string]string{"exact": "GET /x%d/y", "template": "POST /%d/{id}", "templates": "POST //////////{id}/%d"} {
		var texts []string
		for i := range 256 {
			texts = append(texts, fmt.Sprintf(format, i))
		}
		uses, op := patterns(texts...), "POST "+strings.Repeat("/", 1019)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				limit.SpellingOf(op, uses)
			}
		})
	}
}
