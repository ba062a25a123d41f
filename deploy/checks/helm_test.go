//go:build helm

package checks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// helmModule is the program; go run builds it, which takes some minutes the first time.
const helmModule = "helm.sh/helm/v4/cmd/helm@v4.3.1"

// helm runs helm on the chart.
func helm(t *testing.T, args ...string) (output, complaints string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"run", helmModule}, args...)...)
	command.Dir = filepath.Join("..", "helm")
	var out, complained strings.Builder
	command.Stdout, command.Stderr = &out, &complained
	err = command.Run()
	return out.String(), complained.String(), err
}

// TestHelmMatchesTheProgram checks the chart as the overlays of kustomize are checked.
func TestHelmMatchesTheProgram(t *testing.T) {
	if out, complaints, err := helm(t, "lint", "--strict", "limitgate"); err != nil {
		t.Fatalf("%v\n%s%s", err, out, complaints)
	}
	p := builtProgram(t)
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		text, complaints, err := helm(t, "template", "limitgate", "limitgate", "--set", "kind="+kind)
		if err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, complaints)
		}
		golden := filepath.Join("testdata", "helm-"+strings.ToLower(kind)+".yaml")
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
			t.Errorf("%s renders other manifests than %s: run make helm UPDATE=1 and read the diff", kind, golden)
		}
		m, err := decode(strings.TrimPrefix(text, "---\n"))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		for _, problem := range m.problems(p) {
			t.Errorf("%s: %s", kind, problem)
		}
	}
}

// TestHelmRefusesValues: the schema of the values finds mistakes.
func TestHelmRefusesValues(t *testing.T) {
	for _, set := range []string{"settings.listen=:1", "settings.redis.password_file=/x", "image.tagg=x", "kind=StatefulSet", "autoscaling.minReplicas=0", "secretName=Secret", "image.tag=1\n          tty: true", "image.repository=a b", "network.monitoringNamespace=x}"} {
		if _, complaints, err := helm(t, "template", "limitgate", "limitgate", "--set", set); err == nil || !strings.Contains(complaints, "schema") {
			t.Errorf("%s: %v %s", set, err, complaints)
		}
	}
}

// TestHelmRefusesReplicas: a template finds what a schema cannot compare.
func TestHelmRefusesReplicas(t *testing.T) {
	if _, complaints, err := helm(t, "template", "limitgate", "limitgate", "--set", "autoscaling.minReplicas=20"); err == nil || !strings.Contains(complaints, "minReplicas is above maxReplicas") {
		t.Errorf("%v %s", err, complaints)
	}
}

// TestHelmWords: names that YAML takes for numbers, truths or nothing stay text.
func TestHelmWords(t *testing.T) {
	for _, word := range []string{"123", "1e3", "true", "null"} {
		text, complaints, err := helm(t, "template", word, "limitgate", "--set-string", "secretName="+word, "--set-string", "network.monitoringNamespace="+word, "--set-string", "image.tag="+word)
		if err != nil {
			t.Fatalf("%s: %v\n%s", word, err, complaints)
		}
		if _, err := decode(strings.TrimPrefix(text, "---\n")); err != nil || !strings.Contains(text, `secretName: "`+word+`"`) {
			t.Errorf("%s: %v", word, err)
		}
	}
}
