// Package envoy answers Envoy's rate limit service, version 3, over gRPC and as JSON over HTTP:
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ratelimit/v3/rls.proto
//
// Each descriptor of a request is a question of its own, and meets at most one rule. The request is
// admitted if all of them are. A denied request takes nothing, but for descriptors with hits of their
// own: these are counted whatever the answer is, because Envoy sends them when a stream has ended.
// Trouble with the store is a decision, and never an error.
package envoy

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// Options configure a Service.
type Options struct {
	Limiter *limiter.Limiter
	// HashAddr appends what stands for an address in the name of a counter.
	HashAddr rlsconfig.AddressHasher
	// Native are the domains whose descriptors are checks by the limits of plans; they have no rules.
	Native []string
	// MayRefund allows descriptors with negative hits, which give units back. Others are ignored.
	MayRefund bool
	Behaviour
	Now func() time.Time // nil means the clock of this machine
	Log *slog.Logger     // nil means none
}

// Behaviour is how a Service decides and answers.
type Behaviour struct {
	// Shadow admits every request, and the statuses stay true. Quota treats all rules as quotas.
	Shadow, Quota bool
	// ResponseHeaders and RequestHeaders name the header fields for the client and for the service
	// behind Envoy; nil means none.
	ResponseHeaders, RequestHeaders *HeaderNames
	// Metadata makes the service describe the request in its dynamic metadata.
	Metadata bool
	// NearLimit is the part of a limit from which a hit counts as near it.
	NearLimit float64
}

// HeaderNames are the names of the header fields of an answer.
type HeaderNames struct{ Limit, Remaining, Reset string }

// Service decides requests of Envoy. It is safe for concurrent use.
type Service struct {
	opts      Options
	config    atomic.Pointer[config]
	overrides *overrides
	stats     *Stats
	warnings  logthrottle.Throttle
	rounds    sync.Pool // of *round
	// inProgress is the number of descriptors that are decided now.
	inProgress atomic.Int64
}

// New returns a service without rules, which admits all requests.
func New(opts Options) *Service {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{opts: opts, overrides: newOverrides(), stats: newStats()}
	s.warnings.Period, s.warnings.Lines = time.Minute, maxWarnings
	s.rounds.New = func() any { return new(round) }
	s.config.Store(newConfig(&rlsconfig.Config{}, s.stats))
	return s
}

// SetConfig makes later requests use c. It must not be called twice at once.
func (s *Service) SetConfig(c *rlsconfig.Config) {
	s.config.Store(newConfig(c, s.stats))
	s.stats.configLoads.Add(1)
}

// maxWarnings bounds the warnings that are logged in a minute: an xDS server may send configurations all the
// time.
const maxWarnings = 200

// use makes later requests use a configuration, and logs the warnings about it.
func (s *Service) use(c *rlsconfig.Config, warnings rlsconfig.Problems, log *slog.Logger) {
	for _, p := range warnings {
		if s.warnings.Allow() {
			log.Warn("warning about the rate limit configuration", "text", p.String())
		}
	}
	if hidden := s.hidden(c); len(hidden) > 0 && s.warnings.Allow() {
		log.Warn("rules of native domains have no effect", "domains", hidden)
	}
	s.SetConfig(c)
}

// hidden returns the domains of a configuration whose rules have no effect, because they are native.
func (s *Service) hidden(c *rlsconfig.Config) (domains []string) {
	for _, name := range c.Domains() {
		if slices.Contains(s.opts.Native, name) {
			domains = append(domains, name)
		}
	}
	return domains
}

// RefuseConfig counts a configuration that has mistakes, and is not used.
func (s *Service) RefuseConfig() { s.stats.configErrors.Add(1) }

// Limits returns a line for each limit of the configuration, as envoyproxy/ratelimit writes them.
func (s *Service) Limits() []string { return s.config.Load().rules.Lines() }

// Stats returns the counters.
func (s *Service) Stats() *Stats { return s.stats }

// The errors about requests that have no answer. Operators know the texts from logs of Envoy.
var (
	errDomain      = status.Error(codes.Unknown, "rate limit domain must not be empty")
	errDescriptors = status.Error(codes.Unknown, "rate limit descriptor list must not be empty")
	errMany        = status.Errorf(codes.InvalidArgument, "a request has at most %d descriptors", limit.MaxDescriptors)
	errManyNative  = status.Errorf(codes.InvalidArgument, "a request to a domain of --rls-native has at most %d descriptors", maxNative)
	errBusy        = status.Errorf(codes.ResourceExhausted, "more than %d descriptors are decided at once", maxInProgress)
	errEntries     = status.Errorf(codes.InvalidArgument, "the descriptors of a request have at most %d entries", maxEntries)
)

const (
	// maxEntries bounds the entries of all descriptors of a request.
	maxEntries = 4096
	// maxNative bounds the descriptors of a request to a native domain, each of which is a check by
	// several limits.
	maxNative = 32
	// maxInProgress bounds the descriptors that are decided at once, for all clients: half of what the
	// queue of a master holds, so that other protocols have room in it.
	maxInProgress = 2048
)

// ShouldRateLimit decides a request. The errors are those of a request that asks nothing, or too much, or
// beside too many others, and that of a context which has ended.
func (s *Service) ShouldRateLimit(ctx context.Context, req *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	if err := ctx.Err(); err != nil { // the client is gone
		return nil, status.FromContextError(err).Err()
	}
	q := &question{req: req}
	s.guard(q, func() { s.prepare(q, s.opts.Now()) })
	s.guard(q, func() { s.decide(q) })
	var reply *rls.RateLimitResponse
	s.guard(q, func() { reply = s.answer(q) })
	s.done(q)
	return reply, q.err
}

func (s *Service) isNative(domain string) bool { return slices.Contains(s.opts.Native, domain) }

// checkRequest returns the error of a request that asks nothing, or too much.
func checkRequest(req *rls.RateLimitRequest, native bool) error {
	switch n := len(req.GetDescriptors()); {
	case req.GetDomain() == "":
		return errDomain
	case n == 0:
		return errDescriptors
	case n > limit.MaxDescriptors:
		return errMany
	case entriesOf(req) > maxEntries:
		return errEntries
	case native && n > maxNative:
		return errManyNative
	}
	return nil
}

// entriesOf returns the number of entries of a request.
func entriesOf(req *rls.RateLimitRequest) (n int) {
	for _, d := range req.GetDescriptors() {
		n += len(d.GetEntries())
	}
	return n
}
