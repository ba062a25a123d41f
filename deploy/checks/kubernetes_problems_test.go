package checks

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// secretKeys are the keys of the secret that the documentation asks for.
var secretKeys = []string{"users", "redis-password"}

// proxyOf is the container with the program, its pods and its settings.
type proxyOf struct {
	pods
	container    corev1.Container
	sidecar      bool
	text, limits string // the settings file and the limits file
	settings     map[string]string
}

// proxy returns the container with the program.
func (m manifests) proxy(p program) (proxyOf, error) {
	for _, workload := range m.pods {
		spec := workload.template.Spec
		for i, c := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
			if len(c.Command) == 1 && c.Command[0] == "/limitgate" {
				proxy := proxyOf{pods: workload, container: c, sidecar: i < len(spec.InitContainers)}
				return proxy, proxy.read(m, p)
			}
		}
	}
	return proxyOf{}, errors.New("no container has the command /limitgate")
}

// read reads the settings and the limits.
func (x *proxyOf) read(m manifests, p program) error {
	var file string
	for _, arg := range x.container.Args[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !p.flags[name] {
			return fmt.Errorf("limitgate serve has no flag --%s", name)
		}
		if name == "config" {
			file = value
		}
	}
	var err error
	if x.text, err = x.content(m, file); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "limitgate-checks-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	local := filepath.Join(folder, "settings.yaml")
	if err := os.WriteFile(local, []byte(x.text), 0o600); err != nil {
		return err
	}
	args := []string{"--config=" + local}
	for _, arg := range x.container.Args[1:] {
		if !strings.HasPrefix(arg, "--config=") {
			args = append(args, arg)
		}
	}
	if x.settings, err = p.settings(x.environment(), args...); err != nil {
		return err
	}
	x.limits, err = x.content(m, x.settings["limits"])
	return err
}

// environment returns the variables of the image and of the container.
func (x *proxyOf) environment() []string {
	variables := []string{"LIMITGATE_LIMITS=/etc/limitgate/limits.yaml"}
	for _, v := range x.container.Env {
		variables = append(variables, v.Name+"="+v.Value)
	}
	return variables
}

// content returns the text of a file in a volume of the container, or nothing for a file of
// the secret.
func (x *proxyOf) content(m manifests, file string) (string, error) {
	for _, mount := range x.container.VolumeMounts {
		key, within := strings.CutPrefix(file, mount.MountPath+"/")
		if !within {
			continue
		}
		for _, volume := range x.template.Spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			if volume.Secret != nil && slices.Contains(secretKeys, key) {
				return "", nil
			}
			if volume.ConfigMap != nil {
				if text, found := m.configMaps[volume.ConfigMap.Name].Data[key]; found {
					return text, nil
				}
			}
		}
	}
	return "", fmt.Errorf("no volume has %s", file)
}

// problems returns the differences between manifests and the program, and mistakes in the
// manifests that a cluster accepts.
func (m manifests) problems(p program) (found []string) {
	proxy, err := m.proxy(p)
	if err != nil {
		return []string{err.Error()}
	}
	if err := p.checkLimits(proxy.limits); err != nil {
		found = append(found, err.Error())
	}
	for _, name := range []string{"users", "redis.password_file"} {
		if file := proxy.settings[name]; file != "" {
			if _, err := proxy.content(m, file); err != nil {
				found = append(found, name+": "+err.Error())
			}
		}
	}
	found = append(found, proxy.checkPorts()...)
	found = append(found, proxy.checkResources()...)
	found = append(found, proxy.checkRights()...)
	found = append(found, m.checkSelectors(proxy)...)
	return append(found, m.checkNetwork(proxy)...)
}

// port returns the port of a setting, and whether other machines reach it.
func (x *proxyOf) port(setting string) (port int32, open bool) {
	host, text, _ := net.SplitHostPort(x.settings[setting])
	number, _ := strconv.ParseInt(text, 10, 32)
	return int32(number), host == "" || !net.ParseIP(host).IsLoopback()
}

// named returns the port of a container by its name.
func (x *proxyOf) named(name string) (int32, bool) {
	for _, port := range x.container.Ports {
		if port.Name == name {
			return port.ContainerPort, true
		}
	}
	return 0, false
}

// probes are the probes of the container.
func (x *proxyOf) probes() (probes []*corev1.Probe) {
	for _, probe := range []*corev1.Probe{x.container.StartupProbe, x.container.ReadinessProbe, x.container.LivenessProbe} {
		if probe != nil {
			probes = append(probes, probe)
		}
	}
	return probes
}

// checkPorts compares ports and probes with the addresses in the settings.
func (x *proxyOf) checkPorts() (found []string) {
	listen, open := x.port("listen")
	admin, reached := x.port("admin")
	for _, port := range x.container.Ports {
		if port.ContainerPort != admin && (!open || port.ContainerPort != listen) {
			found = append(found, fmt.Sprintf("port %s is %d, the proxy listens on %s and %s", port.Name, port.ContainerPort, x.settings["listen"], x.settings["admin"]))
		}
	}
	for _, probe := range x.probes() {
		if port, known := x.named(probe.HTTPGet.Port.StrVal); !known || port != admin || !reached {
			found = append(found, fmt.Sprintf("probes do not reach %s by port %s", x.settings["admin"], probe.HTTPGet.Port.StrVal))
		}
	}
	if len(x.probes()) < 2 || x.container.StartupProbe == nil {
		found = append(found, "the container lacks probes")
	}
	return found
}

// checkResources checks memory and the time for the end.
func (x *proxyOf) checkResources() (found []string) {
	var goLimit int64
	for _, variable := range x.container.Env {
		if text, isMiB := strings.CutSuffix(variable.Value, "MiB"); variable.Name == "GOMEMLIMIT" && isMiB {
			number, _ := strconv.ParseInt(text, 10, 64)
			goLimit = number << 20
		}
	}
	memory := x.container.Resources.Limits.Memory().Value()
	if goLimit < memory*8/10 || goLimit > memory*95/100 {
		found = append(found, fmt.Sprintf("GOMEMLIMIT is %d bytes, the limit of memory %d", goLimit, memory))
	}
	if x.container.Resources.Requests.Cpu().IsZero() {
		found = append(found, "no request of CPU, which scaling is relative to")
	}
	end, err := time.ParseDuration(x.settings["shutdown_timeout"])
	if err != nil {
		found = append(found, err.Error())
	}
	if hook := x.container.Lifecycle; hook != nil && hook.PreStop != nil {
		end += time.Duration(hook.PreStop.Sleep.Seconds) * time.Second
	}
	// The exports of traces and events have two seconds more.
	if grace := *x.template.Spec.TerminationGracePeriodSeconds; time.Duration(grace-2)*time.Second <= end {
		found = append(found, fmt.Sprintf("the pod is killed after %d s, and its end may take %s", grace, end))
	}
	if x.sidecar && (x.container.RestartPolicy == nil || *x.container.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
		found = append(found, "the init container is no sidecar")
	}
	return found
}

// checkRights checks the restricted profile of Kubernetes' pod security standards, and more.
func (x *proxyOf) checkRights() (found []string) {
	spec := x.template.Spec
	if c := spec.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		found = append(found, "the pod may run as root or make any system call")
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		found = append(found, "the pod has a token for the API server")
	}
	c := x.container.SecurityContext
	if c == nil || c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation || c.Capabilities == nil || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) || c.Capabilities.Add != nil {
		found = append(found, "the container may gain privileges")
	}
	if c == nil || c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem {
		found = append(found, "the root of the container is writable")
	}
	for _, volume := range spec.Volumes {
		if s := volume.Secret; s != nil && (s.DefaultMode == nil || *s.DefaultMode&0o007 != 0 || spec.SecurityContext.FSGroup == nil) {
			found = append(found, "others may read the secrets, or the proxy may not")
		}
	}
	return found
}

// checkSelectors checks that each selector selects the pods of the proxy.
func (m manifests) checkSelectors(x proxyOf) (found []string) {
	check := func(kind, name string, selector *metav1.LabelSelector) {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(labels.Set(x.template.Labels)) {
			found = append(found, fmt.Sprintf("%s %s selects %s, the pods have %v (%v)", kind, name, s, x.template.Labels, err))
		}
	}
	check(x.kind, x.name, x.selector)
	for _, b := range m.budgets {
		check("PodDisruptionBudget", b.Name, b.Spec.Selector)
	}
	for _, p := range m.policies {
		check("NetworkPolicy", p.Name, &p.Spec.PodSelector)
	}
	for _, s := range m.services {
		check("Service", s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
	}
	for _, c := range x.template.Spec.TopologySpreadConstraints {
		check("constraint", c.TopologyKey, c.LabelSelector)
	}
	for _, h := range m.scalers {
		if target := h.Spec.ScaleTargetRef; target.Kind != x.kind || target.Name != x.name {
			found = append(found, fmt.Sprintf("HorizontalPodAutoscaler %s scales %s %s", h.Name, target.Kind, target.Name))
		}
	}
	return append(found, m.checkMonitors(x)...)
}

// checkMonitors checks that monitors find the admin port.
func (m manifests) checkMonitors(x proxyOf) (found []string) {
	admin, _ := x.port("admin")
	for _, monitored := range m.monitors {
		s, err := metav1.LabelSelectorAsSelector(&monitored.Spec.Selector)
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		for _, e := range monitored.Spec.PodMetricsEndpoints {
			if port, known := x.named(e.Port); !known || port != admin || !s.Matches(labels.Set(x.template.Labels)) {
				found = append(found, fmt.Sprintf("%s finds no pod with a port %s", monitored.Name, e.Port))
			}
		}
		for _, e := range monitored.Spec.Endpoints {
			if !m.servicePort(s, x, e.Port, admin) {
				found = append(found, fmt.Sprintf("no Service has a port %s of %d for %s", e.Port, admin, monitored.Name))
			}
		}
	}
	if len(m.monitors) != 1 {
		found = append(found, fmt.Sprintf("%d monitors", len(m.monitors)))
	}
	return found
}

// servicePort reports whether a Service with labels that match leads its port to a port of the proxy.
func (m manifests) servicePort(s labels.Selector, x proxyOf, name string, to int32) bool {
	for _, service := range m.services {
		for _, port := range service.Spec.Ports {
			target, known := x.named(port.TargetPort.StrVal)
			if port.Name == name && known && target == to && s.Matches(labels.Set(service.Labels)) {
				return true
			}
		}
	}
	return false
}

// checkNetwork checks the ports of Services and NetworkPolicies.
func (m manifests) checkNetwork(x proxyOf) (found []string) {
	for _, service := range m.services {
		for _, port := range service.Spec.Ports {
			if _, known := x.named(port.TargetPort.StrVal); !known {
				found = append(found, fmt.Sprintf("Service %s leads to port %s, which no container has", service.Name, port.TargetPort.StrVal))
			}
		}
	}
	redis, _ := x.redisPorts()
	reached := false
	for _, policy := range m.policies {
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				if _, known := x.named(port.Port.StrVal); port.Port.StrVal != "" && !known {
					found = append(found, fmt.Sprintf("NetworkPolicy %s has no port %s", policy.Name, port.Port.StrVal))
				}
			}
		}
		for _, rule := range policy.Spec.Egress {
			for _, port := range rule.Ports {
				reached = reached || slices.Contains(redis, port.Port.IntVal)
			}
		}
	}
	if !reached {
		found = append(found, fmt.Sprintf("no policy lets the proxies reach Redis by %v", redis))
	}
	return found
}

// redisPorts are the ports of the addresses of Redis.
func (x *proxyOf) redisPorts() (ports []int32, err error) {
	for _, addr := range strings.Split(x.settings["redis.addrs"], ",") {
		_, text, err := net.SplitHostPort(path.Base(addr))
		if err != nil {
			return nil, err
		}
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, err
		}
		ports = append(ports, int32(number))
	}
	return ports, nil
}

// paths are the paths of all probes and monitors, each once.
func (m manifests) paths() (paths []string) {
	for _, workload := range m.pods {
		for _, c := range append(slices.Clone(workload.template.Spec.InitContainers), workload.template.Spec.Containers...) {
			for _, probe := range (&proxyOf{container: c}).probes() {
				paths = append(paths, probe.HTTPGet.Path)
			}
		}
	}
	for _, monitored := range m.monitors {
		for _, e := range append(slices.Clone(monitored.Spec.Endpoints), monitored.Spec.PodMetricsEndpoints...) {
			paths = append(paths, e.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
