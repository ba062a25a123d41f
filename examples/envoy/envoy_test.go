package envoy

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	upstream "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/limitgate/limitgate/internal/rlsconfig"
)

// limits returns the domain of ratelimit/config, which has no warnings.
func limits(t *testing.T) *rlsconfig.Domain {
	t.Helper()
	files, err := rlsconfig.ReadDir("ratelimit/config")
	if err != nil {
		t.Fatal(err)
	}
	c, problems := rlsconfig.Parse(files, rlsconfig.Options{})
	if problems != nil || len(c.Domains()) != 1 {
		t.Fatal(problems)
	}
	return c.Domain(c.Domains()[0])
}

// edge is the configuration of envoy.yaml.
type edge struct {
	bootstrap bootstrap.Bootstrap
	manager   hcm.HttpConnectionManager
	limit     ratelimit.RateLimit
	tokens    jwt.JwtAuthentication
}

// readEdge decodes envoy.yaml.
func readEdge(t *testing.T) *edge {
	t.Helper()
	e := &edge{}
	message(t, documents(t, "envoy.yaml")[0], &e.bootstrap)
	unpack(t, e.bootstrap.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig(), &e.manager)
	for _, f := range e.manager.GetHttpFilters() {
		switch f.GetName() {
		case "envoy.filters.http.ratelimit":
			unpack(t, f.GetTypedConfig(), &e.limit)
		case "envoy.filters.http.jwt_authn":
			unpack(t, f.GetTypedConfig(), &e.tokens)
		}
	}
	return e
}

func unpack(t *testing.T, from *anypb.Any, to proto.Message) {
	t.Helper()
	if err := from.UnmarshalTo(to); err != nil {
		t.Fatal(err)
	}
}

// cluster returns a cluster by its name.
func (e *edge) cluster(t *testing.T, name string) *cluster.Cluster {
	t.Helper()
	all := e.bootstrap.GetStaticResources().GetClusters()
	i := slices.IndexFunc(all, func(c *cluster.Cluster) bool { return c.GetName() == name })
	if i < 0 || all[i].GetLoadAssignment().GetClusterName() != name {
		t.Fatalf("there is no cluster %q", name)
	}
	return all[i]
}

// address returns the only address of a cluster.
func address(c *cluster.Cluster) string {
	a := c.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
	return net.JoinHostPort(a.GetAddress(), fmt.Sprint(a.GetPortValue()))
}

// checkFilter checks what all examples say of the filter.
func checkFilter(t *testing.T, f *ratelimit.RateLimit, domain string) {
	t.Helper()
	if f.GetDomain() != domain || f.GetTimeout().AsDuration() != 20*time.Millisecond || f.GetFailureModeDeny() ||
		f.GetRateLimitService().GetTransportApiVersion() != core.ApiVersion_V3 {
		t.Errorf("the filter is %v, of the domain %s", f, domain)
	}
}

func TestEnvoy(t *testing.T) {
	e := readEdge(t)
	valid(t, &e.bootstrap)
	checkFilter(t, &e.limit, limits(t).Name)

	limiter := e.cluster(t, e.limit.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName())
	var protocol upstream.HttpProtocolOptions
	unpack(t, limiter.GetTypedExtensionProtocolOptions()["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"], &protocol)
	if protocol.GetExplicitHttpConfig().GetHttp2ProtocolOptions() == nil {
		t.Error("gRPC needs HTTP/2")
	}
	if got := limiter.GetHealthChecks()[0].GetGrpcHealthCheck().GetServiceName(); got != "ratelimit" {
		t.Errorf("the health of %q is checked", got)
	}
	content, err := os.ReadFile("envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if command := "limitgate serve --rls " + address(limiter) + " --rls-config examples/envoy/ratelimit/config"; !strings.Contains(string(content), command) {
		t.Errorf("the file does not say %q", command)
	}

	for _, r := range e.tokens.GetRules() {
		provider := e.tokens.GetProviders()[r.GetRequires().GetProviderName()]
		if provider == nil || provider.GetIssuer() == "" || len(provider.GetAudiences()) == 0 {
			t.Fatalf("the provider of %v is %v", r, provider)
		}
		e.cluster(t, provider.GetRemoteJwks().GetHttpUri().GetCluster())
	}
	if !e.manager.GetUseRemoteAddress().GetValue() || e.manager.GetXffNumTrustedHops() != 1 {
		t.Error("addresses of clients are not those that a trusted proxy added")
	}
	names := []string{}
	for _, f := range e.manager.GetHttpFilters() {
		names = append(names, strings.TrimPrefix(f.GetName(), "envoy.filters.http."))
	}
	if got := strings.Join(names, " "); got != "jwt_authn ratelimit router" {
		t.Errorf("the filters are %s: limits need the tenant of the token", got)
	}
}

// entriesOf returns the entries that Envoy makes of the actions of a descriptor, with samples of what
// requests have.
func entriesOf(t *testing.T, actions []*route.RateLimit_Action) (entries []rlsconfig.Entry) {
	t.Helper()
	for _, a := range actions {
		var e rlsconfig.Entry
		switch {
		case a.GetRemoteAddress() != nil:
			e = rlsconfig.Entry{Key: "remote_address", Value: "198.51.100.7"}
		case a.GetGenericKey() != nil:
			e = rlsconfig.Entry{Key: a.GetGenericKey().GetDescriptorKey(), Value: a.GetGenericKey().GetDescriptorValue()}
		case a.GetHeaderValueMatch() != nil:
			e = rlsconfig.Entry{Key: a.GetHeaderValueMatch().GetDescriptorKey(), Value: a.GetHeaderValueMatch().GetDescriptorValue()}
		case a.GetMetadata() != nil:
			e = rlsconfig.Entry{Key: a.GetMetadata().GetDescriptorKey(), Value: "acme"}
		case a.GetRequestHeaders() != nil:
			e = rlsconfig.Entry{Key: a.GetRequestHeaders().GetDescriptorKey(), Value: "acme"}
		default:
			t.Errorf("the action %v is not known here", a)
		}
		entries = append(entries, e)
	}
	return entries
}

// meetsAll checks that each descriptor of a route meets a limit, and returns the names of the limits.
func meetsAll(t *testing.T, domain *rlsconfig.Domain, of string, all []*route.RateLimit) (names []string) {
	t.Helper()
	if len(all) == 0 {
		t.Errorf("%s has no limits", of)
	}
	for _, l := range all {
		entries := entriesOf(t, l.GetActions())
		if x := domain.Explain(entries); x.Rule == nil || x.Rule.Limit == nil {
			t.Errorf("%s: %v meets no limit: %s", of, entries, x.Reason)
		} else {
			names = append(names, x.Rule.Limit.Name)
		}
	}
	return names
}

// TestDescriptors: the descriptors of every route meet a limit, and every limit is met.
func TestDescriptors(t *testing.T) {
	e, domain := readEdge(t), limits(t)
	met := map[string]bool{}
	for _, r := range e.manager.GetRouteConfig().GetVirtualHosts()[0].GetRoutes() {
		e.cluster(t, r.GetRoute().GetCluster())
		for _, name := range meetsAll(t, domain, "route "+r.GetName(), r.GetRoute().GetRateLimits()) {
			met[name] = true
		}
		for _, l := range r.GetRoute().GetRateLimits() {
			for _, a := range l.GetActions() {
				if m := a.GetMetadata(); m != nil && !e.hasToken(r.GetMatch(), m.GetMetadataKey().GetPath()[0].GetKey()) {
					t.Errorf("route %s has no token, and a limit by its claims", r.GetName())
				}
			}
		}
	}
	var check func(level []*rlsconfig.Descriptor)
	check = func(level []*rlsconfig.Descriptor) {
		for _, d := range level {
			// A value of one tenant is met by that tenant alone.
			if r := d.Rule; r != nil && !r.Limit.Unlimited && (d.Value == "" || d.Key != "tenant") && !met[r.Limit.Name] {
				t.Errorf("no route meets %s", r.Path)
			}
			check(d.Below)
		}
	}
	check(domain.Descriptors())
}

// hasToken reports whether requests of a route need a token, whose claims are metadata under key.
func (e *edge) hasToken(match *route.RouteMatch, key string) bool {
	path := match.GetPath() + match.GetPrefix()
	return slices.ContainsFunc(e.tokens.GetRules(), func(r *jwt.RequirementRule) bool {
		return strings.HasPrefix(path, r.GetMatch().GetPrefix()) && e.tokens.GetProviders()[r.GetRequires().GetProviderName()].GetPayloadInMetadata() == key
	})
}

// parse returns the entries of words KEY=VALUE.
func parse(words string) (entries []rlsconfig.Entry) {
	for _, word := range strings.Fields(words) {
		key, value, _ := strings.Cut(word, "=")
		entries = append(entries, rlsconfig.Entry{Key: key, Value: value})
	}
	return entries
}
