package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// Mistake is an error in the settings, for which a program exits as for wrong arguments.
type Mistake string

func (m Mistake) Error() string { return string(m) }

// problem is a setting that is wrong in combination with others.
type problem struct{ name, text string }

// Validate checks the combination of settings. The most important rule: an address that
// other hosts on the network can reach is rejected, unless UnsafeOpen declares that
// something else protects it. Load calls Validate; it is exported for settings that were
// created otherwise. The error lists all problems, one a line.
func (s *Settings) Validate() error {
	var errs []error
	for _, p := range s.problems() {
		errs = append(errs, errors.New(p.text))
	}
	for _, c := range s.clashes() {
		errs = append(errs, fmt.Errorf("%s and %s%s", s.NameOf(c.names[0]), s.NameOf(c.names[1]), c.text))
	}
	return errors.Join(errs...)
}

func (s *Settings) problems() []problem {
	all := s.checkListener("listen", s.Listen, "let anybody on the network spend quotas")
	all = append(all, s.httpProblems()...)
	if s.Admin != "" {
		all = append(all, s.checkListener("admin", s.Admin, "show metrics and profiles to anybody on the network")...)
	}
	if s.Instances.Source == InstancesHeartbeat && !s.UsesRedis() {
		all = append(all, problem{"instances", "heartbeat is kept in a Redis, and there is none: name one by --redis, or give the number of proxies"})
	}
	all = append(all, s.redisProblems()...)
	all = append(all, s.tlsProblems()...)
	all = append(all, s.tokenProblems()...)
	all = append(all, s.bypassProblems()...)
	if s.PrivacyIPSecretPreviousFile != "" && s.PrivacyIPSecretFile == "" {
		all = append(all, problem{"privacy.ip_secret_previous_file", "it is replaced by another secret: set --privacy-ip-secret-file"})
	}
	all = append(all, s.limitsProblems()...)
	all = append(all, s.webhookProblems()...)
	all = append(all, s.rlsProblems()...)
	if s.JSON && !s.PrintConfig {
		all = append(all, problem{"json", "it says how to print; add --print-config"})
	}
	return all
}

// isSet says whether a setting has another value than its default.
type isSet struct {
	name string
	set  bool
}

// firstSet returns a problem of the first setting that is set, or none.
func firstSet(text string, all ...isSet) []problem {
	for _, s := range all {
		if s.set {
			return []problem{{s.name, text}}
		}
	}
	return nil
}

// httpProblems checks the settings of checks over HTTP.
func (s *Settings) httpProblems() (all []problem) {
	h := &s.HTTP
	switch {
	case h.Listen == "":
		all = firstSet("it has no effect without --http: say --http 127.0.0.1:8080",
			isSet{"http.gateway", h.Gateway != "" && h.Gateway != "auto"}, isSet{"http.tenant_header", h.TenantHeader != ""}, isSet{"http.cost_header", h.CostHeader != ""},
			isSet{"http.dim_headers", len(h.DimHeaders) > 0}, isSet{"http.trusted_cidrs", len(h.TrustedCIDRs) > 0},
			isSet{"http.trusted_hops", h.TrustedHops > defaultTrustedHops}, isSet{"http.address_header", h.AddressHeader != "" && h.AddressHeader != defaultAddressHeader})
	case !strings.HasPrefix(h.Listen, UnixPrefix):
		all = s.checkListener("http.listen", h.Listen, "let anybody on the network spend quotas")
	}
	if h.TrustedHops == 0 && h.AddressHeader != "" && h.AddressHeader != defaultAddressHeader {
		all = append(all, problem{"http.trusted_hops", "0 is the peer, and the header of --http-address-header is not read: say 1, or leave out --http-address-header"})
	}
	if len(h.TrustedCIDRs) > 0 && h.TrustedHops != defaultTrustedHops {
		all = append(all, problem{"http.trusted_hops", "networks take its place: say --http-trusted-hops or --http-trusted-cidrs"})
	}
	return all
}

// tlsProblems checks the settings of TLS on our addresses.
func (s *Settings) tlsProblems() (all []problem) {
	if (s.TLSCert == "") != (s.TLSKey == "") {
		name := "tls.cert"
		if s.TLSCert == "" {
			name = "tls.key"
		}
		all = append(all, problem{name, "a certificate needs its key: set --tls-cert and --tls-key"})
	}
	if s.TLSClientCA != "" && s.TLSCert == "" {
		all = append(all, problem{"tls.client_ca", "certificates of clients need TLS: set --tls-cert and --tls-key"})
	}
	return all
}

// bypassProblems checks the settings of bypass tokens.
func (s *Settings) bypassProblems() []problem {
	switch {
	case s.BypassKeys == "" && s.BypassRevoked != "":
		return []problem{{"bypass.revoked", "tokens need keys: set --bypass-jwks"}}
	case isInsecureURL(s.BypassKeys):
		return []problem{{"bypass.jwks", insecureKeys}}
	}
	return nil
}

// insecureKeys is the problem of keys whose origin is not proven.
const insecureKeys = "keys are read from a file or by https, which proves their origin"

// isInsecureURL reports whether a name is a URL, and not of https.
func isInsecureURL(name string) bool {
	return strings.Contains(name, "://") && !strings.HasPrefix(name, "https://")
}

// tokenProblems checks the settings of tokens.
func (s *Settings) tokenProblems() (all []problem) {
	switch {
	case s.JWTKeys == "" && s.JWTIssuer != "":
		return []problem{{"jwt.issuer", "tokens need the keys of their issuer: set --jwt-jwks"}}
	case s.JWTKeys == "" && s.JWTAudience != "":
		return []problem{{"jwt.audience", "tokens need the keys of their issuer: set --jwt-jwks"}}
	case s.JWTKeys == "":
		return nil
	case isInsecureURL(s.JWTKeys):
		all = append(all, problem{"jwt.jwks", insecureKeys})
	}
	if s.JWTIssuer == "" || s.JWTAudience == "" {
		all = append(all, problem{"jwt.jwks", "tokens of any issuer, or for any other service, would be accepted: set --jwt-issuer and --jwt-audience"})
	}
	if s.JWTTenantClaim == "" {
		all = append(all, problem{"jwt.tenant_claim", "a token must name a tenant: name the claim, or leave the setting out for tenant_id"})
	}
	return all
}

// limitsProblems checks the settings of limits in a table, and of limits on trial.
func (s *Settings) limitsProblems() (all []problem) {
	if s.Cell != "" && (s.LimitsTable() == "" || s.CellsTable == "") {
		all = append(all, problem{"cells.id", "cells share limits that are in a table, and are registered in one: say --limits dynamodb://TABLE and --cells-table TABLE"})
	}
	if s.RolloutGate != "" && s.LimitsTable() == "" {
		all = append(all, problem{"rollout.gate", "it is for limits in a table: say --limits dynamodb://TABLE, or --limits-canary for a file"})
	}
	if s.RolloutGate != "" && s.CellsTable == "" {
		all = append(all, problem{"rollout.gate", "a proxy that takes a revision back reports it by the table of cells: say --cells-table TABLE, which needs no cells"})
	}
	if s.LimitsCanary > 0 && (s.Limits == "" || s.LimitsTable() != "") {
		all = append(all, problem{"limits_canary", "it tries changes of a limits file, and there is none: those of a table are tried by limitgate rollout"})
	}
	return all
}

// checkListener checks an address; would is the consequence of leaving it open.
func (s *Settings) checkListener(name, addr, would string) []problem {
	if err := checkAddress(addr, 0, "6380"); err != nil {
		return []problem{{name, fmt.Sprintf("%s: %s", name, err)}}
	}
	forClients := name == "listen" || name == "http.listen"
	authenticated := forClients && (s.NeedsAuth() || s.TLSClientCA != "") || name == "rls.listen" && s.rlsClientCA() != ""
	if s.UnsafeOpen || isLoopback(addr) || authenticated {
		return nil
	}
	or := ""
	switch {
	case name == "rls.listen":
		or = ", set --tls-client-ca, or --rls-tls-client-ca beside a certificate of its own, so that clients need a certificate"
	case forClients:
		or = ", set --users so that clients need a password, or --tls-client-ca so that they need a certificate"
	}
	why, near := "is no loopback address", ""
	host, _, _ := net.SplitHostPort(addr)
	if _, err := netip.ParseAddr(host); host != "" && err != nil {
		why, near = "has a name, and of names localhost alone is a loopback address", limit.DidYouMean(host, []string{"localhost"})
	}
	return []problem{{name, fmt.Sprintf("%s %s %s, and would %s: listen on 127.0.0.1%s, or say --unsafe-open if a network policy protects it%s", name, addr, why, would, or, near)}}
}

// isLoopback reports whether only this machine can reach a well-formed address. Of names
// it accepts only localhost: the addresses of others can change.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}
