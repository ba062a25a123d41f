package config

import (
	"fmt"
	"strings"
)

// emptyEffects are the effects of settings that are given and empty, as by a variable of a script that is not set.
var emptyEffects = []struct{ name, effect string }{
	{"users", "clients need no password"},
	{"tls.cert", "connections are not encrypted"},
	{"tls.client_ca", "clients need no certificate"},
	{"jwt.jwks", "no token of JWT is accepted"},
	{"limits", "the built-in sample of limits decides"},
}

// warnings returns sentences about settings that are valid, and seldom meant.
func (l *loading) warnings(t settings, s *Settings) (all []string) {
	if s.UsesRedis() {
		all = append(all, PatienceWarnings(s.DecisionTimeout)...)
	} else if g := l.used[t.named("redis")]; g.source != "default" && g.line == 0 {
		all = append(all, g.place+": it is empty, so that the store is the memory of this process: each proxy admits whole limits for itself")
	} else if n := s.Instances.Count; s.Instances.Source == InstancesStatic && n > 1 {
		all = append(all, fmt.Sprintf("--instances %d: without --redis the store is the memory of this process, so that each proxy admits whole limits for itself, but for those of store: local", n))
	}
	for _, e := range emptyEffects {
		g := l.used[t.named(e.name)]
		if g.source == "default" || g.line > 0 || g.text != "" || e.name == "limits" && (s.UsesRedis() || s.EnvoyAlone()) || e.name == "users" && s.NeedsAuth() { // limits beside a Redis have a line of their own
			continue
		}
		all = append(all, g.place+": it is empty, so that "+e.effect)
	}
	for _, p := range s.HTTP.TrustedCIDRs {
		if p.Bits() == 0 {
			all = append(all, fmt.Sprintf("--http-trusted-cidrs %s: every address is one of a proxy, so that each client names the address that counts: name the networks of your proxies", p))
		}
	}
	for _, d := range s.HTTP.DimHeaders {
		if isHeaderFirst(d.Dim, d.Header) {
			all = append(all, fmt.Sprintf("--http-dim-headers %s=%s: the dimension stands in front: write %[2]s=%[1]s if %[1]s is the header", plain(d.Dim), plain(d.Header)))
		}
	}
	if s.LimitsCanary == 0 && l.used[t.named("limits_canary_threshold")].source != "default" {
		all = append(all, "--limits-canary-threshold has no effect without --limits-canary: changes apply to all tenants at once")
	}
	return append(all, s.prefixWarnings()...)
}

// The shortest prefixes of addresses that need no warning: a shorter one is often the network of a whole provider.
const leastIPv4Prefix, leastIPv6Prefix = 16, 32

// prefixWarnings returns sentences about prefixes of addresses that are short.
func (s *Settings) prefixWarnings() (all []string) {
	for _, p := range []struct {
		flag        string
		bits, least int
	}{{"--privacy-ipv4-prefix", s.PrivacyIPv4Prefix, leastIPv4Prefix}, {"--privacy-ipv6-prefix", s.PrivacyIPv6Prefix, leastIPv6Prefix}} {
		if p.bits < p.least {
			all = append(all, fmt.Sprintf("%s %d: all clients of a network of /%d are one for the limits, which may be a whole provider", p.flag, p.bits, p.bits))
		}
	}
	return all
}

// isHeaderFirst reports whether a dimension and its header stand the wrong way round, as X-User-Id=user.
func isHeaderFirst(dim, header string) bool {
	return strings.HasPrefix(strings.ToLower(dim), "x-") && !strings.Contains(header, "-")
}
