package proxy

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// limitsSource supplies the limits.
type limitsSource interface {
	Set() *limit.Set
	OnChange(apply func(*limit.Set))
	Reload() error
	Status() config.LimitsStatus
	// Threshold is the share of all requests, 0 to 1, that canary limits may deny beyond
	// the denials of the current limits.
	Threshold() float64
	// TakeBack ends the canary of limits of a version, or of any if version is empty.
	TakeBack(version, why string) error
	// Promote applies canary limits to all tenants.
	Promote() error
	// Cell returns the cell of this proxy, or nil.
	Cell() *cell
	// Unlisted returns the function that receives tenants that the limits do not list. It
	// is nil if they list all tenants.
	Unlisted() func(tenant string)
	RegisterMetrics(r *prometheus.Registry)
	// Run keeps the limits up to date until ctx ends, and then closes the source.
	Run(ctx context.Context) error
	// Close releases the source if Run is not called.
	Close()
}

// compileOptions returns the options of the settings that limits are checked against.
func compileOptions(s *config.Settings) limit.CompileOptions {
	return limit.CompileOptions{IPMaxTTL: s.PrivacyIPMaxTTL.Microseconds(), IPSecret: s.PrivacyIPSecretFile != ""}
}
