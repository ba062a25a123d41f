package users

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// generated returns the rule for a generated password.
func generated(password string) string {
	sum := sha256.Sum256([]byte(password))
	return "#" + hex.EncodeToString(sum[:])
}

func mustParse(t testing.TB, text string) *Set {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	s := mustParse(t, strings.Join([]string{
		"# a comment", "", "  \t", "  # another one",
		"user acme on " + generated("a") + " ~acme +@check\r",
		"user all ON nopass allkeys allchannels +@all -@admin",
		"user of-redis on " + generated("b") + " resetchannels &* sanitize-payload ~x* ~y -@all +@read +@DIALECTS",
		`user odd off ~a\*b ~c\** ~\[d ~e\\`,
		"user again on nopass resetpass " + generated("c") + " ~* resetkeys ~z allcommands nocommands",
	}, "\n"))
	for i, want := range []string{
		"user acme on #<hidden> ~acme resetchannels -@all +@check",
		"user all on nopass ~* &* -@all +@check +@read +@dialects +@bypass",
		"user of-redis on #<hidden> ~x* ~y resetchannels -@all +@read +@dialects",
		`user odd off ~a\*b ~c\** ~\[d ~e\\ resetchannels -@all`,
		"user again on #<hidden> ~z resetchannels -@all",
	} {
		if got := s.All()[i].String(); got != want {
			t.Errorf("user %d is\n%s, want\n%s", i, got, want)
		}
	}
	for tenant, want := range map[string]bool{"a*b": true, "a": false, "axb": false, "c*": true, "c*x": true, "c": false, "[d": true, `e\`: true, "": false} {
		if got := s.User("odd").MayUse(tenant); got != want {
			t.Errorf("odd may use %q: %v", tenant, got)
		}
	}
	for name, want := range map[string]string{"acme": "acme", "all": "", "of-redis": "", "odd": "", "again": "z"} {
		if got := s.User(name).Tenant(); got != want {
			t.Errorf("the tenant of %s is %q, want %q", name, got, want)
		}
	}
	if s.Default() != nil {
		t.Error("without a default user nobody needs to authenticate")
	}
	if mustParse(t, "user default on nopass").Default() == nil || mustParse(t, "user default off nopass").Default() != nil ||
		mustParse(t, "user default on "+generated("x")).Default() != nil {
		t.Error("the default user is not the one of the file")
	}
}

// TestParseMistakes checks the errors, and that none repeats a password.
func TestParseMistakes(t *testing.T) {
	const hash = "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA"
	mustParse(t, "user a on "+hash)
	for rules, want := range map[string]string{
		">hunter2":        "a file holds hashes and no passwords: limitgate hash-password makes a hash",
		"<hunter2":        "a file holds hashes and no passwords: limitgate hash-password makes a hash",
		"# hunter2":       "a comment has a line of its own, which begins with #",
		"#$argon2id$v=19": "an Argon2id hash has no # in front: it begins with $argon2id$",
		"#hunter2":        "behind # are the 64 hexadecimal digits of a SHA-256; limitgate hash-password makes them",
		"on hunter2":      "word 4 of the line is no rule: a password stands there as a hash, which limitgate hash-password makes, and a tenant is written ~acme; rules are on, off, nopass, #HASH, $argon2id$..., ~TENANT, ~PREFIX*, +@GROUP, -@GROUP and certificate=",
		"+get":            `"get" is a command, and rights are given for groups: @check, @read, @dialects, @admin, @bypass and @all`,
		"+@keyspace":      `"@keyspace" is not a group; there are @check, @read, @dialects, @admin, @bypass and @all`,
		"~a*b":            `"~a*b" is neither a tenant nor the beginning of tenants; write ~acme, ~team-*, or \* for the character`,
		"~a?":             `"~a?" is neither a tenant nor the beginning of tenants; write ~acme, ~team-*, or \* for the character`,
		"~":               `"~" is neither a tenant nor the beginning of tenants; write ~acme, ~team-*, or \* for the character`,
		`~a\`:             `"~a\\" is neither a tenant nor the beginning of tenants; write ~acme, ~team-*, or \* for the character`,
		"~-":              "- stands for the tenant of a user, and is no name of one",
		`~\-`:             "- stands for the tenant of a user, and is no name of one",
		"~* ~a":           `"~a" adds nothing to ~*`,
		"%R~a":            "rights for reading or writing of keys, and selectors, are not supported: write ~acme +@check",
		"(+@check":        "rights for reading or writing of keys, and selectors, are not supported: write ~acme +@check",
		"!00":             `"!00" takes away what the line has given: leave both out`,
		"reset":           `"reset" takes away what the line has given: leave both out`,
		"&news":           "there are no channels: leave the rule out",
		"on":              `user "a" is on, but has no password: limitgate hash-password makes a hash`,
		"$2b$10$x":        "it is not a hash of Argon2id; limitgate hash-password --stdin makes one",
		"certificate=a":   "a certificate is named as certificate=uri:URI, certificate=dns:HOST or certificate=cn:NAME",
		"certificate=cn:": "a certificate is named as certificate=uri:URI, certificate=dns:HOST or certificate=cn:NAME",
		strings.ReplaceAll(hash, "m=64", "m=4194304"):                "the parameters m=4194304,t=1,p=1 are out of bounds: m is at most 65536, t at most 10, p at most 4",
		strings.ReplaceAll(hash, "t=1", "t=11"):                      "the parameters m=64,t=11,p=1 are out of bounds: m is at most 65536, t at most 10, p at most 4",
		strings.ReplaceAll(hash, "p=1", "p=5"):                       "the parameters m=64,t=1,p=5 are out of bounds: m is at most 65536, t at most 10, p at most 4",
		strings.ReplaceAll(hash, "m=64", "m=4"):                      "the parameters m=4,t=1,p=1 are out of bounds: m is at most 65536, t at most 10, p at most 4",
		strings.ReplaceAll(hash, "p=1", "p=256"):                     "it is not a hash of Argon2id; limitgate hash-password --stdin makes one",
		strings.ReplaceAll(hash, "m=64", "m=064"):                    "it is not a hash of Argon2id; limitgate hash-password --stdin makes one",
		strings.ReplaceAll(hash, "argon2id", "argon2i"):              "it is not a hash of Argon2id; limitgate hash-password --stdin makes one",
		strings.ReplaceAll(hash, "c2FsdHNhbHQ", "c2FsdHNhbHQ="):      "it is not a hash of Argon2id; limitgate hash-password --stdin makes one",
		strings.ReplaceAll(hash, "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAA"): "it is not a hash of Argon2id; limitgate hash-password --stdin makes one",
		hash + " " + hash + " " + hash:                               "a user has at most 2 hashes of Argon2id",
	} {
		_, err := Parse([]byte("\nuser a " + rules))
		if err == nil || !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(err.Error(), "line 2: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s:\n%v, want\n%s", rules, err, want)
		}
	}
	for text, want := range map[string]string{
		"usr a on nopass":          "line 1: a line begins with user and a name, as in: user acme on #HASH ~acme +@check",
		"user on":                  "line 1: behind user is a name, and this line has a rule there: write for example user acme on #HASH ~acme +@check",
		"user ~acme on":            "line 1: behind user is a name, and this line has a rule there: write for example user acme on #HASH ~acme +@check",
		"user >hunter2 on":         "line 1: behind user is a name, and this line has a rule there: write for example user acme on #HASH ~acme +@check",
		"user":                     "line 1: a line begins with user and a name, as in: user acme on #HASH ~acme +@check",
		"user a off\nuser a off":   `line 2: user "a" is in line 1 already`,
		"user a +x\nuser b +y":     "line 1: user \"a\": \"x\" is a command, and rights are given for groups: @check, @read, @dialects, @admin, @bypass and @all\nline 2: user \"b\": \"y\" is a command, and rights are given for groups: @check, @read, @dialects, @admin, @bypass and @all",
		"user " + longText(257):    "line 1: a name has at most 256 bytes",
		longText(MaxFileBytes + 1): "the file has more than 16777216 bytes",
		"user a certificate=cn:x\nuser b certificate=cn:x": `line 2: user "b": "certificate=cn:x" is of user "a" already`,
	} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.40s:\n%v, want\n%s", text, err, want)
		}
	}
}

// TestParseManyMistakes: the wrong file costs neither memory nor a log line of its size.
func TestParseManyMistakes(t *testing.T) {
	_, err := Parse([]byte(strings.Repeat("x\n", 1<<20)))
	if err == nil || len(err.Error()) > 4000 || !strings.HasSuffix(err.Error(), "\nand more mistakes") || strings.Count(err.Error(), "\n") != maxMistakes {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestParseByteOrderMark(t *testing.T) {
	mustParse(t, "\uFEFFuser a on nopass")
}

func longText(n int) string { return strings.Repeat("x", n) }

func TestByCertificate(t *testing.T) {
	s := mustParse(t, "user uri on certificate=uri:spiffe://prod/acme\nuser dns on certificate=dns:a.example\nuser cn on certificate=cn:a.example\nuser gone off certificate=cn:gone")
	spiffe, _ := url.Parse("spiffe://prod/acme")
	other, _ := url.Parse("spiffe://prod/other")
	for _, c := range []struct {
		name string
		cert x509.Certificate
		want string
	}{
		{"a URI", x509.Certificate{URIs: []*url.URL{spiffe}}, "uri"},
		{"a second URI", x509.Certificate{URIs: []*url.URL{other, spiffe}}, "uri"},
		{"a URI of no user, and a name of one", x509.Certificate{URIs: []*url.URL{other}, DNSNames: []string{"a.example"}}, ""},
		{"a DNS name", x509.Certificate{DNSNames: []string{"b.example", "a.example"}}, "dns"},
		{"a DNS name of no user, and a common name of one", x509.Certificate{DNSNames: []string{"b.example"}, Subject: pkix.Name{CommonName: "a.example"}}, ""},
		{"a common name", x509.Certificate{Subject: pkix.Name{CommonName: "a.example"}}, "cn"},
		{"a user that is off", x509.Certificate{Subject: pkix.Name{CommonName: "gone"}}, ""},
		{"nothing", x509.Certificate{}, ""},
	} {
		got := ""
		if u := s.ByCertificate(&c.cert); u != nil {
			got = u.Name
		}
		if got != c.want {
			t.Errorf("%s: user %q, want %q", c.name, got, c.want)
		}
	}
}

// FuzzParse checks that the rules of a parsed user mean the same when they are parsed again.
func FuzzParse(f *testing.F) {
	f.Add("user a on nopass ~x* ~y +@check\n# c\nuser b off certificate=cn:b")
	f.Add("user a on " + generated("x") + ` ~a\** -@all +@all`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse([]byte(text))
		if err != nil {
			return
		}
		for _, u := range s.All() {
			again, err := Parse([]byte(strings.ReplaceAll(u.String(), Hidden, generated("x"))))
			if err != nil {
				t.Fatalf("%s: %v", u, err)
			}
			if o := again.All()[0]; o.String() != u.String() || o.groups != u.groups || o.allTenants != u.allTenants || o.Enabled != u.Enabled {
				t.Errorf("%s became %s", u, o)
			}
		}
	})
}

// TestDocumentedUsers checks that the example of the documentation is valid.
func TestDocumentedUsers(t *testing.T) {
	document, err := os.ReadFile("../../docs/users.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples strings.Builder
	for _, m := range regexp.MustCompile("(?s)```acl\n(.*?)```").FindAllSubmatch(document, -1) {
		examples.Write(m[1])
	}
	s := mustParse(t, examples.String())
	if n := len(s.All()); n != 6 {
		t.Errorf("%d users", n)
	}
	if s.User("payments").Tenant() != "payments" || !s.User("gateway").MayUse("team-a") || s.User("gateway").May(Read) || !s.User("ops").MayAll() {
		t.Error("the users of the example have other rights than the text says")
	}
}

// TestIncomplete finds users whose lines lack a rule.
func TestIncomplete(t *testing.T) {
	for _, row := range []struct{ file, want string }{
		{"user a on nopass ~acme +@check\nuser b on nopass +@check", "b: ~TENANT or ~*"},
		{"user a on nopass ~acme +@check\nuser b on nopass ~acme", "b: +@GROUP"},
		{"user a on nopass +@read allkeys\nuser b off nopass +@check", ""},
		{"user b #307c609f87da43c3d563428a4f7efdf9857f4871fd10465732c4ab11a985a08c ~acme +@check", "b: on"},
		{"user a\nuser b ~acme\nuser c off", "a: on, b: on"},
		{"user b on nopass +@check\nuser c on nopass ~c", "b: ~TENANT or ~*, c: +@GROUP"},
		{"user b off #307c609f87da43c3d563428a4f7efdf9857f4871fd10465732c4ab11a985a08c ~acme +@check", ""},
	} {
		set, err := Parse([]byte(row.file))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(set.Incomplete(), ", "); got != row.want {
			t.Errorf("%q: %q, want %q", row.file, got, row.want)
		}
	}
}
