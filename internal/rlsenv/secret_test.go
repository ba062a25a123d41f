package rlsenv

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// secret is in no text of this package, but for those about variables without secrets.
const secret = "Zq7"

// drawPair draws a variable, of ratelimit or like one of its, and a value with the secret or one
// that is often right.
func drawPair(t *rapid.T) string {
	all := Table()
	r := all[rapid.IntRange(0, len(all)-1).Draw(t, "variable")]
	name := r.Name
	if rapid.IntRange(0, 9).Draw(t, "misspelled") == 0 {
		name += rapid.SampledFrom([]string{"S", "_URL", " "}).Draw(t, "end")
	}
	return name + "=" + rapid.OneOf(
		rapid.Just(r.Default),
		rapid.SampledFrom([]string{"true", "tcp", "CLUSTER", "SENTINEL", "grpc", "GRPC_XDS_SOTW", "", "1", "1s", "/" + secret, "m,a:1"}),
		rapid.SampledFrom([]string{
			secret, "redis://u:" + secret + "@a:1", "redis://" + secret + ":%zz@a:1", "a:1," + secret, "u:" + secret, "authorization:" + secret,
			"a:b:" + secret, "http://" + secret + "@c:1", "http://c:1?" + secret, "tcp://" + secret, secret + "=" + secret, "m,redis://:" + secret + "@a:1",
		}),
		rapid.Map(rapid.String(), func(text string) string { return text + secret + text }),
	).Draw(t, "value")
}

// TestNoSecret checks that neither notices nor errors have a part of a value that may have a secret.
func TestNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkParse(t, rapid.SliceOfN(rapid.Custom(drawPair), 0, 30).Draw(t, "environ"))
	})
}

// oneLine matches the texts of notices.
var oneLine = regexp.MustCompile(`^[ -~]+$`)

// checkParse checks properties of every result. No value of environ may have the secret without
// meaning it.
func checkParse(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, environ []string,
) {
	t.Helper()
	s, notices, err := Parse(environ)
	if (s == nil) != (err != nil) {
		t.Fatalf("%q: settings %v and error %v", environ, s, err)
	}
	shows := map[string]bool{}
	for _, v := range variables(new(draft)) {
		shows[v.name] = v.value.shown
	}
	var refusals []string
	for _, n := range notices {
		if strings.Contains(n.Name+n.Text, secret) && !shows[n.Name] || !oneLine.MatchString(n.Text) || !shellName.MatchString(n.Name) {
			t.Fatalf("%q: %+v", environ, n)
		}
		if n.Refused {
			refusals = append(refusals, "env "+n.Name+": "+n.Text)
		}
	}
	if got := strings.Join(refusals, "\n"); (err == nil) != (got == "") || err != nil && err.Error() != got {
		t.Fatalf("%q: %v, want %s", environ, err, got)
	}
	if s != nil && (s.XDS == nil) != (s.ConfigDir != "") {
		t.Fatalf("%q: %+v has two sources of limits or none", environ, s)
	}
	if s != nil && (s.Redis.Sentinel != "" || s.Redis.Cluster) && len(s.Redis.Addrs) == 0 {
		t.Fatalf("%q: %+v has no place of Redis", environ, s)
	}
}

// FuzzParse looks for environments, one variable a line, that break the properties of every result.
func FuzzParse(f *testing.F) {
	for _, r := range rows {
		f.Add(strings.Join(r.set(r.text), "\n"))
		for _, text := range r.wrong {
			f.Add(strings.Join(r.set(text), "\n"))
		}
	}
	f.Add("REDIS_URLL=" + secret + "\nREDIS_TYPE=SENTINEL\nREDIS_URL=m,redis://u:" + secret + "@a:1")
	f.Fuzz(func(t *testing.T, text string) {
		environ := strings.Split(text, "\n")
		for i, pair := range environ {
			if name, _, _ := strings.Cut(pair, "="); strings.Contains(name, secret) {
				environ[i] = ""
			}
		}
		checkParse(t, environ)
	})
}
