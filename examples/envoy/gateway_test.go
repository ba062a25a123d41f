package envoy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/rlsenv"
)

// variable is one of the environment of a container.
type variable struct{ Name, Value string }

// gatewayConfig is a configuration of Envoy Gateway.
type gatewayConfig struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Gateway    struct {
		ControllerName string `yaml:"controllerName"`
	}
	Provider struct {
		Type       string
		Kubernetes struct {
			RateLimitDeployment struct {
				Replicas  int
				Container struct {
					Image string
					Env   []variable
				}
				Patch struct {
					Type  string
					Value struct {
						Spec struct {
							Template struct {
								Spec struct {
									Containers []struct {
										Name    string
										Command []string
									}
								}
							}
						}
					}
				}
			} `yaml:"rateLimitDeployment"`
		}
	}
	RateLimit struct {
		Backend struct {
			Type  string
			Redis struct{ URL string }
		}
		Timeout    string
		FailClosed bool `yaml:"failClosed"`
	} `yaml:"rateLimit"`
}

// gatewayEnvironment is what Envoy Gateway sets in the container of its rate limit service, see
// expectedRateLimitContainerEnv of its sources.
var gatewayEnvironment = []string{
	"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true", "RUNTIME_WATCH_ROOT=false", "LOG_LEVEL=info",
	"USE_STATSD=false", "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=envoy-gateway:18001", "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
	"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/certs/tls.crt", "GRPC_SERVER_TLS_KEY=/certs/tls.key", "GRPC_SERVER_TLS_CA_CERT=/certs/ca.crt",
	"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/certs/tls.crt", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/certs/tls.key",
	"CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/certs/ca.crt", "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "REDIS_SOCKET_TYPE=tcp",
	"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=:19001",
}

// TestGateway: the variables of Envoy Gateway with those of the example are settings that nothing
// refuses, on the ports that the network policy opens.
func TestGateway(t *testing.T) {
	var manifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name, Namespace string }
		Data       map[string]string
	}
	strict(t, documents(t, "gateway/envoy-gateway.yaml")[0], &manifest)
	var content yaml.Node
	if err := yaml.Unmarshal([]byte(manifest.Data["envoy-gateway.yaml"]), &content); err != nil {
		t.Fatal(err)
	}
	var c gatewayConfig
	strict(t, &content, &c)

	deployment := c.Provider.Kubernetes.RateLimitDeployment
	environ := append(slices.Clone(gatewayEnvironment), "REDIS_URL="+c.RateLimit.Backend.Redis.URL)
	for _, v := range deployment.Container.Env {
		environ = append(environ, v.Name+"="+v.Value)
	}
	s, notices, err := rlsenv.Parse(environ)
	if err != nil || s.GRPCTLS == nil || s.GRPCTLS.ClientCA != "/certs/ca.crt" || s.XDS == nil || s.PrometheusAddr == "" {
		t.Fatalf("the settings are %+v: %v, %v", s, notices, err)
	}
	for _, v := range deployment.Container.Env {
		if strings.HasPrefix(v.Name, "LIMITGATE_") {
			if loaded, _, _, err := config.Load(nil, []string{v.Name + "=" + v.Value}, nil); err != nil || !loaded.UnsafeOpen {
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	}
	containers := deployment.Patch.Value.Spec.Template.Spec.Containers
	if len(containers) != 1 || containers[0].Name != "envoy-ratelimit" || !slices.Equal(containers[0].Command, []string{"/limitgate", "envoy"}) {
		t.Errorf("the containers are %+v", containers)
	}
	if c.RateLimit.Backend.Type != "Redis" || c.RateLimit.Timeout != "20ms" || c.RateLimit.FailClosed || c.Kind != "EnvoyGateway" {
		t.Errorf("the rate limit is %+v", c.RateLimit)
	}
	checkPorts(t, portOf(s.GRPC), portOf(s.PrometheusAddr))
}

func portOf(addr string) string { return addr[strings.LastIndex(addr, ":")+1:] }

// checkPorts checks that the network policy opens ports and no others.
func checkPorts(t *testing.T, want ...string) {
	t.Helper()
	var n struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name, Namespace string }
		Spec       struct {
			PodSelector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			} `yaml:"podSelector"`
			PolicyTypes []string `yaml:"policyTypes"`
			Ingress     []struct {
				From []struct {
					NamespaceSelector struct {
						MatchLabels map[string]string `yaml:"matchLabels"`
					} `yaml:"namespaceSelector"`
					PodSelector struct {
						MatchLabels map[string]string `yaml:"matchLabels"`
					} `yaml:"podSelector"`
				}
				Ports []struct {
					Protocol string
					Port     int
				}
			}
		}
	}
	strict(t, documents(t, "gateway/network-policy.yaml")[0], &n)
	var ports []string
	for _, rule := range n.Spec.Ingress {
		if len(rule.From) == 0 {
			t.Error("the network policy lets everybody in")
		}
		for _, p := range rule.Ports {
			ports = append(ports, fmt.Sprint(p.Port))
		}
	}
	if !slices.Equal(ports, want) || n.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] != "envoy-ratelimit" {
		t.Errorf("the network policy opens %v of %v, want %v", ports, n.Spec.PodSelector, want)
	}
}

// policyRule is a rule of a BackendTrafficPolicy.
type policyRule struct {
	ClientSelectors []struct {
		SourceCIDR struct{ Type, Value string }  `yaml:"sourceCIDR,omitempty"`
		Path       struct{ Type, Value string }  `yaml:",omitempty"`
		Headers    []struct{ Type, Name string } `yaml:",omitempty"`
	} `yaml:"clientSelectors"`
	Limit struct {
		Requests uint32
		Unit     string
	}
	ShadowMode bool `yaml:"shadowMode"`
}

// TestPolicy: the limits of the policy are those of ratelimit/config.
func TestPolicy(t *testing.T) {
	var p struct {
		TargetRefs []struct{ Group, Kind, Name string }          `yaml:"targetRefs"`
		RateLimit  struct{ Global struct{ Rules []policyRule } } `yaml:"rateLimit"`
	}
	spec := objects(t, "gateway/policy.yaml")["gateway.envoyproxy.io/v1alpha1 BackendTrafficPolicy"].Spec
	strict(t, &spec, &p)
	var got []string
	for _, r := range p.RateLimit.Global.Rules {
		got = append(got, fmt.Sprint(r.Limit.Requests, " ", strings.ToUpper(r.Limit.Unit), " ", r.ShadowMode))
	}
	var want []string
	domain := limits(t)
	for _, entries := range []string{"remote_address=192.0.2.1", "remote_address=2001:db8::1", "tenant=acme", "route=search tenant=acme"} {
		r := domain.Match(parse(entries))
		want = append(want, fmt.Sprint(r.Limit.RequestsPerUnit, " ", r.Limit.Unit, " ", r.Shadow))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the limits of the policy are %q, and those of the folder %q", got, want)
	}
}
