package httpapi_test

import (
	"context"
	"crypto/x509"
	"net/netip"
	"testing"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/httpapi"
	"github.com/limitgate/limitgate/internal/users"
)

// admitting admits everything.
type admitting struct{ recorder }

func (*admitting) Decide(_ *users.User, _ netip.Addr, cmds [][][]byte, answers []commands.Answer) []commands.Answer {
	for range cmds {
		a := commands.Answer{}
		a.Allowed = true
		answers = append(answers, a)
	}
	return answers
}

func (*admitting) LogIn(context.Context, netip.Addr, *x509.Certificate, string, string) (*users.User, string) {
	return nil, ""
}

// BenchmarkCheck measures a request for /check on connections that wait for each answer, with the time of its client.
func BenchmarkCheck(b *testing.B) {
	addr := serve(b, httpapi.Options{Handler: &admitting{}})
	before := cpu()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) { askAgain(b, addr, pb) })
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}
