package bench

import (
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

func TestAnswersOfARateLimitServiceAreChecked(t *testing.T) {
	request := rlsRequests(3)[7]
	limited := &rls.RateLimitResponse_DescriptorStatus{CurrentLimit: &rls.RateLimitResponse_RateLimit{RequestsPerUnit: rlsUnits}}
	without := &rls.RateLimitResponse_DescriptorStatus{}
	for name, test := range map[string]struct {
		code     rls.RateLimitResponse_Code
		statuses []*rls.RateLimitResponse_DescriptorStatus
		want     string
	}{
		"admitted by three limits": {code: rls.RateLimitResponse_OK, statuses: []*rls.RateLimitResponse_DescriptorStatus{limited, limited, limited}},
		"denied":                   {code: rls.RateLimitResponse_OVER_LIMIT, statuses: []*rls.RateLimitResponse_DescriptorStatus{limited, limited, limited}, want: "does not admit"},
		"one meets no limit":       {code: rls.RateLimitResponse_OK, statuses: []*rls.RateLimitResponse_DescriptorStatus{limited, without, limited}, want: "2 of 3 descriptors"},
		"empty":                    {want: "does not admit"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkAnswer(request, &rls.RateLimitResponse{OverallCode: test.code, Statuses: test.statuses})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q", err, test.want)
			}
		})
	}
}

// TestProgramThatIsNoRateLimitService runs a case beside programs that do not serve.
func TestProgramThatIsNoRateLimitService(t *testing.T) {
	binary := buildLimitgate(t)
	for name, test := range map[string]struct{ program, want string }{
		"missing": {"/nonexistent/ratelimit", "--envoy-ratelimit takes the program that go build"},
		"ends":    {script(t, "echo no such setting; exit 1"), "ended, its log is:\nno such setting"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Limitgate: binary, EnvoyRatelimit: test.program, Quick: true, Rounds: 1, Round: time.Millisecond, Only: []string{"rls-1"}}
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Cases[0].Error; !strings.Contains(got, test.want) {
				t.Errorf("error = %q, want %q", got, test.want)
			}
		})
	}
}
