package proxy

import "testing"

// TestConfigError: /readyz has the first problem of Envoy's limits, and how many there are.
func TestConfigError(t *testing.T) {
	for problem, want := range map[string]string{
		"": "", "a.yaml:1: no unit": "a.yaml:1: no unit", "a.yaml:1: no unit\na.yaml:2: no key\nb.yaml:3: no key": "a.yaml:1: no unit; and 2 more",
	} {
		r := &rateLimitService{problem: func() string { return problem }}
		if got := r.configError(); got != want {
			t.Errorf("%q: %q, want %q", problem, got, want)
		}
	}
	var off *rateLimitService
	if got := off.configError(); got != "" {
		t.Errorf("without the service: %q", got)
	}
}
