package config

import (
	"fmt"
	"strings"
	"time"
)

// RLS are the settings of Envoy's rate limit service.
type RLS struct {
	// Listen is the host:port of gRPC, or UnixPrefix and the path of a socket; empty is off.
	Listen string
	// Config is the folder of the files of envoyproxy/ratelimit.
	Config string
	// HTTP is the host:port of /json and /healthcheck, and Debug that of /rlconfig and /stats;
	// empty is off.
	HTTP, Debug string
	// Extensions is the file of what limits have beside their files, see RLSExtensions; it may be empty.
	Extensions string
	// Native are the domains whose descriptors are checks by the limits of plans.
	Native []string
	// Prefix is part of the name of each counter; it may be empty.
	Prefix string
	// MergeDomains lets several files describe one domain. Refunds lets clients give units back.
	MergeDomains, Refunds bool

	// TLS are files for gRPC alone; without a certificate those of the other addresses count. Its
	// ClientSAN has no setting.
	TLS RLSTLS

	// The fields below have no setting: limitgate envoy sets them.

	// Shadow admits all requests, and Quota treats all limits as quotas.
	Shadow, Quota bool
	// ResponseHeaders and RequestHeaders are header fields about limits; nil is none.
	ResponseHeaders, RequestHeaders *RLSHeaders
	// Metadata describes each request in dynamic metadata.
	Metadata bool
	// ForceStart serves requests before Config has a good configuration. HealthyWithConfig makes
	// the service healthy only when it has one, as it is without an XDS or ForceStart anyway.
	ForceStart, HealthyWithConfig bool
	// NearLimit is the part of a limit above which hits count as near it; 0 is the default.
	NearLimit float64
	// MaxConnectionAge is how long a connection lives, 0 for ever, and MaxConnectionAgeGrace how
	// long its calls may take to end after that.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
	// XDS is the server of the limits, instead of Config; nil is none.
	XDS *RLSXDS
}

// RLSXDS is a server of limits, and how to connect to it.
type RLSXDS struct {
	// Server is host:port. NodeID and Metadata describe this client, and Headers are sent to the
	// server; they may be secret.
	Server, NodeID    string
	Metadata, Headers map[string]string
	// Encrypted asks for TLS, by CA, or the authorities of the system if it is empty, with the
	// certificate of Cert and Key unless they are empty. ServerName is the name in the server's
	// certificate; empty is its host.
	Encrypted                 bool
	CA, Cert, Key, ServerName string
	// MinBackoff and MaxBackoff bound the pauses between connections; 0 are the defaults.
	MinBackoff, MaxBackoff time.Duration
	MaxMessage             int // in bytes; 0 is the default
}

// RLSTLS are paths of PEM files, and the DNS name that certificates of clients must be for; an empty one
// allows any.
type RLSTLS struct{ Cert, Key, ClientCA, ClientSAN string }

// RLSHeaders are names of header fields.
type RLSHeaders struct{ Limit, Remaining, Reset string }

// rlsClientCA returns the authorities of the certificates that clients of the rate limit service need.
func (s *Settings) rlsClientCA() string {
	if s.RLS.TLS.Cert != "" {
		return s.RLS.TLS.ClientCA
	}
	return s.TLSClientCA
}

// rlsSettings are the settings of Envoy's rate limit service.
func rlsSettings(s *Settings) settings {
	r := &s.RLS
	return settings{
		{
			name: "rls.listen", short: "rls", group: groupRLS,
			usage: "where Envoy's rate limit service is served by gRPC; empty switches it off", value: optional(httpAddress(&r.Listen), &r.Listen),
		},
		{
			name: "rls.config", group: groupRLS,
			usage: "the folder of its limits, files as envoyproxy/ratelimit reads them", value: filePath(&r.Config),
		},
		{
			name: "rls.extensions", group: groupRLS,
			usage: "a file of what its limits have beside those files, such as another algorithm", value: filePath(&r.Extensions),
		},
		{
			name: "rls.http", group: groupRLS,
			usage: "where it answers /json and /healthcheck by HTTP; empty switches that off", value: optional(listenAddress(&r.HTTP, "8082"), &r.HTTP),
		},
		{
			name: "rls.debug", group: groupRLS,
			usage: "where it shows its limits and its counters, /rlconfig and /stats; empty switches that off", value: optional(listenAddress(&r.Debug, "8083"), &r.Debug),
		},
		{
			name: "rls.native", group: groupRLS,
			usage: "domains whose descriptors are checks by --limits: of tenant, op, ip and dimensions", value: domains(&r.Native),
		},
		{
			name: "rls.tls_cert", group: groupRLS,
			usage: "the certificate of the rate limit service, with its chain; empty is that of --tls-cert", value: filePath(&r.TLS.Cert),
		},
		{
			name: "rls.tls_key", group: groupRLS,
			usage: "the key of that certificate", value: filePath(&r.TLS.Key),
		},
		{
			name: "rls.tls_client_ca", group: groupRLS,
			usage: "the authorities of the certificates that its clients then need", value: filePath(&r.TLS.ClientCA),
		},
		{
			name: "rls.prefix", group: groupRLS,
			usage: "part of the names of its counters: services with different ones share none in a Redis", value: counterPrefix(&r.Prefix),
		},
		{
			name: "rls.merge_domains", group: groupRLS, initial: "false",
			usage: "several files may describe one domain", value: toggle(&r.MergeDomains),
		},
		{
			name: "rls.refunds", group: groupRLS, initial: "false",
			usage: "descriptors with negative hits give units back, for all clients of the service", value: toggle(&r.Refunds),
		},
	}
}

// maxPrefix bounds a prefix of names of counters, in bytes.
const maxPrefix = 256

// counterPrefix parses a prefix of names of counters.
func counterPrefix(to *string) value {
	return value{arg: "TEXT", shape: stringOnly, read: func(text string) error {
		if len(text) > maxPrefix {
			return fmt.Errorf("it has %d bytes, at most %d", len(text), maxPrefix)
		}
		*to = text
		return nil
	}}
}

// maxNative bounds the native domains: a mesh has one or a few.
const maxNative = 64

// domains parses the names of domains.
func domains(to *[]string) value {
	return value{arg: "DOMAIN,...", shape: stringList, read: func(text string) error {
		var all []string
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name != "" {
				all = append(all, name)
			}
		}
		if len(all) > maxNative {
			return fmt.Errorf("there are %d domains, at most %d", len(all), maxNative)
		}
		*to = all
		return nil
	}}
}

// rlsProblems checks the settings of Envoy's rate limit service.
func (s *Settings) rlsProblems() (all []problem) {
	r := &s.RLS
	if r.Listen == "" {
		return firstSet("it has no effect without --rls: say --rls 127.0.0.1:8081",
			isSet{"rls.config", r.Config != ""}, isSet{"rls.http", r.HTTP != ""}, isSet{"rls.debug", r.Debug != ""}, isSet{"rls.native", len(r.Native) > 0})
	}
	if (r.TLS.Cert == "") != (r.TLS.Key == "") {
		all = append(all, problem{"rls.tls_cert", "a certificate needs its key: set --rls-tls-cert and --rls-tls-key"})
	}
	if r.TLS.ClientCA != "" && r.TLS.Cert == "" {
		all = append(all, problem{"rls.tls_client_ca", "it belongs to a certificate of the rate limit service: set --rls-tls-cert and --rls-tls-key"})
	}
	if !strings.HasPrefix(r.Listen, UnixPrefix) {
		all = append(all, s.checkListener("rls.listen", r.Listen, "let anybody on the network spend quotas")...)
	}
	if r.HTTP != "" {
		all = append(all, s.checkListener("rls.http", r.HTTP, "let anybody on the network spend quotas")...)
	}
	if r.Debug != "" {
		all = append(all, s.checkListener("rls.debug", r.Debug, "show the limits to anybody on the network")...)
	}
	return all
}
