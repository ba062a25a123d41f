package checks

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKubernetesMatchesTheProgram checks each overlay.
func TestKubernetesMatchesTheProgram(t *testing.T) {
	p := builtProgram(t)
	for _, overlay := range overlays {
		m, err := decode(render(t, overlay))
		if err != nil {
			t.Fatalf("%s: %v", overlay, err)
		}
		for _, problem := range m.problems(p) {
			t.Errorf("%s: %s", overlay, problem)
		}
	}
}

// TestKubernetesMistakesAreReported changes the manifests of an overlay.
func TestKubernetesMistakesAreReported(t *testing.T) {
	p := builtProgram(t)
	texts := map[string]string{}
	for _, overlay := range overlays {
		texts[overlay] = render(t, overlay)
	}
	for name, row := range map[string]struct{ overlay, old, new, want string }{
		"an unknown field":                  {"deployment", "minReplicas:", "minimumReplicas:", `unknown field "minimumReplicas"`},
		"a probe in another place":          {"deployment", "startupProbe:", "startProbe:", `unknown field "startProbe"`},
		"an unknown setting":                {"deployment", "max_conn_age: 10m", "max_connection_age: 10m", "max_connection_age"},
		"an unknown flag":                   {"daemonset", "--config=", "--settings=", "no flag --settings"},
		"a settings file elsewhere":         {"daemonset", "/settings/settings.yaml", "/settings/limitgate.yaml", "no volume has /etc/limitgate/settings/limitgate.yaml"},
		"limits elsewhere":                  {"sidecar", "--limits=/etc/limitgate/limits/limits.yaml", "--limits=/etc/limits.yaml", "no volume has /etc/limits.yaml"},
		"the limits of the image":           {"daemonset", "        - --limits=/etc/limitgate/limits/limits.yaml\n", "", "no volume has /etc/limitgate/limits.yaml"},
		"limits with a mistake":             {"deployment", "rate: 100/s", "rate: 100/y", "check limits"},
		"another port":                      {"deployment", `listen: ":6380"`, `listen: ":6381"`, "port resp"},
		"an admin address no probe reaches": {"sidecar", `admin: ":9180"`, "admin: 127.0.0.1:9180", "probes do not reach"},
		"a short end":                       {"deployment", "terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 15", "is killed"},
		"too much memory for Go":            {"sidecar", "value: 115MiB", "value: 1150MiB", "GOMEMLIMIT"},
		"a budget of other pods":            {"deployment", "  maxUnavailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: limitgate\n", "  maxUnavailable: 1\n  selector: {}\n", "PodDisruptionBudget limitgate selects"},
		"a policy without Redis":            {"deployment", "port: 6379", "port: 6380", "no policy lets the proxies reach Redis"},
		"a client that nobody lets in":      {"deployment", "port: resp", "port: redis", "NetworkPolicy limitgate has no port redis"},
		"a monitor of another port":         {"daemonset", "port: http-admin", "port: admin", "no Service has a port admin"},
		"a writable root":                   {"deployment", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "is writable"},
		"root":                              {"deployment", "runAsNonRoot: true", "runAsNonRoot: false", "may run as root"},
		"secrets for all":                   {"deployment", "defaultMode: 288", "defaultMode: 292", "others may read"},
		"a sidecar that only begins":        {"sidecar", "        restartPolicy: Always\n", "", "is no sidecar"},
		"a scaler of nothing":               {"deployment", "    kind: Deployment\n    name: limitgate\n", "    kind: Deployment\n    name: proxies\n", "scales Deployment proxies"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(texts[row.overlay], row.old, row.new, 1)
			if changed == texts[row.overlay] {
				t.Fatalf("%s does not have %q any more", row.overlay, row.old)
			}
			m, err := decode(changed)
			if err != nil {
				if !strings.Contains(err.Error(), row.want) {
					t.Errorf("%v, want %s", err, row.want)
				}
				return
			}
			problems := m.problems(p)
			if !slices.ContainsFunc(problems, func(s string) bool { return strings.Contains(s, row.want) }) {
				t.Errorf("%q, want %s", problems, row.want)
			}
		})
	}
}

// TestKubernetesPathsAnswer starts the proxies of each overlay, without their Redis and on
// other ports, and asks for the paths of probes and monitors.
func TestKubernetesPathsAnswer(t *testing.T) {
	p := builtProgram(t)
	for _, overlay := range overlays {
		m, err := decode(render(t, overlay))
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := m.proxy(p)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		args := []string{"--config=" + filepath.Join(folder, "settings.yaml"), "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--redis=", "--redis-user=", "--redis-password-file="}
		files := map[string]string{"settings.yaml": proxy.text, "limits.yaml": proxy.limits, "users": "user payments on #" + strings.Repeat("9a", 32) + " ~payments +@check\n"}
		args = append(args, "--limits="+filepath.Join(folder, path.Base(proxy.settings["limits"])))
		if proxy.settings["users"] != "" {
			args = append(args, "--users="+filepath.Join(folder, path.Base(proxy.settings["users"])))
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		admin := p.start(t, args...)
		paths := m.paths()
		if len(paths) < 3 {
			t.Errorf("%s: paths %q, want those of probes and metrics", overlay, paths)
		}
		for _, path := range paths {
			if got := status(t, fmt.Sprintf("http://%s%s", admin, path)); got != 200 {
				t.Errorf("%s: GET %s is answered with %d", overlay, path, got)
			}
		}
	}
}
