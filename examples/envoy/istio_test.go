package envoy

import (
	"fmt"
	"slices"
	"testing"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"go.yaml.in/yaml/v4"
)

// object is a manifest of Kubernetes, with its spec unread.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name, Namespace string }
	Spec       yaml.Node
}

// objects returns the manifests of a file by their kind.
func objects(t *testing.T, path string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, n := range documents(t, path) {
		var o object
		strict(t, n, &o)
		all[o.APIVersion+" "+o.Kind] = o
	}
	return all
}

// service is the spec of a Service.
type service struct {
	Selector map[string]string
	Ports    []struct {
		Name       string
		Port       int
		TargetPort int `yaml:"targetPort"`
	}
}

// tokens is the spec of a RequestAuthentication.
type tokens struct {
	Selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	JWTRules []struct {
		Issuer               string
		URI                  string `yaml:"jwksUri"`
		Audiences            []string
		OutputClaimToHeaders []struct{ Header, Claim string } `yaml:"outputClaimToHeaders"`
	} `yaml:"jwtRules"`
}

// refusals is the spec of an AuthorizationPolicy that refuses requests without a token.
type refusals struct {
	Selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	Action string
	Rules  []struct {
		From []struct {
			Source struct {
				Without []string `yaml:"notRequestPrincipals"`
			}
		}
		To []struct {
			Operation struct{ Paths []string }
		}
	}
}

// vhost selects virtual hosts and routes.
type vhost struct {
	Name  string
	Route struct{ Name string } `yaml:",omitempty"`
}

// patches is the spec of an EnvoyFilter.
type patches struct {
	WorkloadSelector struct{ Labels map[string]string } `yaml:"workloadSelector"`
	ConfigPatches    []struct {
		ApplyTo string `yaml:"applyTo"`
		Match   struct {
			Context  string
			Listener struct {
				FilterChain struct {
					Filter struct {
						Name      string
						SubFilter struct{ Name string } `yaml:"subFilter"`
					}
				} `yaml:"filterChain"`
			}
			RouteConfiguration struct{ VHost vhost } `yaml:"routeConfiguration"`
		}
		Patch struct {
			Operation string
			Value     yaml.Node
		}
	} `yaml:"configPatches"`
}

func TestIstio(t *testing.T) {
	all, domain := objects(t, "istio.yaml"), limits(t)
	var s service
	o := all["v1 Service"]
	strict(t, &o.Spec, &s)
	host := fmt.Sprintf("%s.%s.svc.cluster.local", o.Metadata.Name, o.Metadata.Namespace)
	var auth tokens
	authSpec := all["security.istio.io/v1 RequestAuthentication"].Spec
	strict(t, &authSpec, &auth)
	var deny refusals
	denySpec := all["security.istio.io/v1 AuthorizationPolicy"].Spec
	strict(t, &denySpec, &deny)
	var filter patches
	filterSpec := all["networking.istio.io/v1alpha3 EnvoyFilter"].Spec
	strict(t, &filterSpec, &filter)
	for _, labels := range []map[string]string{auth.Selector.MatchLabels, deny.Selector.MatchLabels, filter.WorkloadSelector.Labels} {
		if labels["istio"] != "ingressgateway" {
			t.Errorf("a manifest is for the workloads %v", labels)
		}
	}

	patched := map[string]int{}
	for _, p := range filter.ConfigPatches {
		patched[p.ApplyTo]++
		value := p.Patch.Value
		switch p.ApplyTo {
		case "HTTP_FILTER":
			var f hcm.HttpFilter
			message(t, &value, &f)
			valid(t, &f)
			var limit ratelimit.RateLimit
			unpack(t, f.GetTypedConfig(), &limit)
			checkFilter(t, &limit, domain.Name)
			grpc := limit.GetRateLimitService().GetGrpcService().GetEnvoyGrpc()
			if want := fmt.Sprintf("outbound|%d||%s", s.Ports[0].Port, host); grpc.GetClusterName() != want || grpc.GetAuthority() != host {
				t.Errorf("the filter asks %v, want %s", grpc, want)
			}
			if p.Patch.Operation != "INSERT_BEFORE" || p.Match.Listener.FilterChain.Filter.SubFilter.Name != "envoy.filters.http.router" {
				t.Errorf("the filter is not before the router: %+v", p.Match)
			}
		case "VIRTUAL_HOST":
			var host route.VirtualHost
			message(t, &value, &host)
			meetsAll(t, domain, "the virtual host", host.GetRateLimits())
			checkHeaders(t, host.GetRateLimits(), &auth)
		case "HTTP_ROUTE":
			var r route.Route
			message(t, &value, &r)
			meetsAll(t, domain, "route "+p.Match.RouteConfiguration.VHost.Route.Name, r.GetRoute().GetRateLimits())
			checkHeaders(t, r.GetRoute().GetRateLimits(), &auth)
		default:
			t.Errorf("a patch applies to %s", p.ApplyTo)
		}
		if p.Match.Context != "GATEWAY" || p.ApplyTo != "HTTP_FILTER" && p.Patch.Operation != "MERGE" {
			t.Errorf("%s: the patch is %s in %s", p.ApplyTo, p.Patch.Operation, p.Match.Context)
		}
	}
	if len(patched) != 3 {
		t.Errorf("the patches are %v", patched)
	}
	if s.Ports[0].Name[:4] != "grpc" || deny.Action != "DENY" || deny.Rules[0].To[0].Operation.Paths[0] != "/v1/*" {
		t.Errorf("the service is %+v, and %+v is refused", s, deny)
	}
}

// checkHeaders checks that limits by a header are by one that Istio makes of a verified token.
func checkHeaders(t *testing.T, all []*route.RateLimit, auth *tokens) {
	t.Helper()
	for _, l := range all {
		if err := l.ValidateAll(); err != nil {
			t.Error(err)
		}
		for _, a := range l.GetActions() {
			header := a.GetRequestHeaders().GetHeaderName()
			if header != "" && !slices.ContainsFunc(auth.JWTRules[0].OutputClaimToHeaders, func(c struct{ Header, Claim string }) bool { return c.Header == header }) {
				t.Errorf("the header %s is the client's own", header)
			}
		}
	}
}
