package checks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// overlays are the folders of deploy/kubernetes/overlays.
var overlays = []string{"deployment", "daemonset", "sidecar"}

// render returns the manifests of an overlay, as kubectl kustomize prints them.
func render(t *testing.T, overlay string) string {
	t.Helper()
	folder := filepath.Join("..", "kubernetes", "overlays", overlay)
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pods are the pods of a workload.
type pods struct {
	kind, name string
	selector   *metav1.LabelSelector
	template   corev1.PodTemplateSpec
}

// monitor is a ServiceMonitor or PodMonitor, as far as the manifests use it.
type monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Selector            metav1.LabelSelector `json:"selector"`
		JobLabel            string               `json:"jobLabel"`
		Endpoints           []endpoint           `json:"endpoints"`
		PodMetricsEndpoints []endpoint           `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port          string `json:"port"`
	Path          string `json:"path"`
	Interval      string `json:"interval"`
	ScrapeTimeout string `json:"scrapeTimeout"`
}

// manifests are the objects of an overlay.
type manifests struct {
	configMaps map[string]corev1.ConfigMap
	accounts   []corev1.ServiceAccount
	pods       []pods
	services   []corev1.Service
	policies   []networkingv1.NetworkPolicy
	budgets    []policyv1.PodDisruptionBudget
	scalers    []autoscalingv2.HorizontalPodAutoscaler
	monitors   []monitor
}

// decode reads manifests. A field that its type does not have is an error.
func decode(text string) (m manifests, err error) {
	m.configMaps = map[string]corev1.ConfigMap{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			return m, fmt.Errorf("read kind: %w", err)
		}
		if err := m.add(kind, []byte(document)); err != nil {
			return m, fmt.Errorf("decode %s of %s: %w", kind.Kind, kind.APIVersion, err)
		}
	}
	return m, nil
}

// add decodes one document.
func (m *manifests) add(kind metav1.TypeMeta, text []byte) error {
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 ConfigMap":
		return into(text, func(c corev1.ConfigMap) { m.configMaps[c.Name] = c })
	case "v1 ServiceAccount":
		return into(text, func(a corev1.ServiceAccount) { m.accounts = append(m.accounts, a) })
	case "v1 Service":
		return into(text, func(s corev1.Service) { m.services = append(m.services, s) })
	case "apps/v1 Deployment":
		return into(text, func(d appsv1.Deployment) {
			m.pods = append(m.pods, pods{kind.Kind, d.Name, d.Spec.Selector, d.Spec.Template})
		})
	case "apps/v1 DaemonSet":
		return into(text, func(d appsv1.DaemonSet) {
			m.pods = append(m.pods, pods{kind.Kind, d.Name, d.Spec.Selector, d.Spec.Template})
		})
	case "networking.k8s.io/v1 NetworkPolicy":
		return into(text, func(p networkingv1.NetworkPolicy) { m.policies = append(m.policies, p) })
	case "policy/v1 PodDisruptionBudget":
		return into(text, func(b policyv1.PodDisruptionBudget) { m.budgets = append(m.budgets, b) })
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return into(text, func(h autoscalingv2.HorizontalPodAutoscaler) { m.scalers = append(m.scalers, h) })
	case "monitoring.coreos.com/v1 ServiceMonitor", "monitoring.coreos.com/v1 PodMonitor":
		return into(text, func(s monitor) { m.monitors = append(m.monitors, s) })
	}
	return fmt.Errorf("the tests do not know it")
}

// into decodes a document of a type strictly, and passes it on.
func into[T any](text []byte, take func(T)) error {
	var value T
	if err := yaml.UnmarshalStrict(text, &value); err != nil {
		return err
	}
	take(value)
	return nil
}

// TestKubernetesRenders compares the manifests with golden files. With -update it writes them.
func TestKubernetesRenders(t *testing.T) {
	for _, overlay := range overlays {
		text := render(t, overlay)
		golden := filepath.Join("testdata", "kubernetes-"+overlay+".yaml")
		if *update {
			if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("%s renders other manifests than %s: run go test -C deploy/checks -update and read the diff", overlay, golden)
		}
	}
}
