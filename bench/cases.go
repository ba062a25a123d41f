package bench

import (
	"context"
	"slices"

	"github.com/limitgate/limitgate/internal/load"
)

// Case is one row of the benchmark.
type Case struct {
	// Name is the name on the command line.
	Name string
	// Title describes in a few words what is measured.
	Title string
	// About explains the figures.
	About string
	// Aside marks a case that runs only when it is named.
	Aside bool

	run func(ctx context.Context, l *lab) (*Result, error)
}

// Cases returns all cases in the order in which they run.
func Cases() []Case {
	return slices.Concat(memoryCases(), exactCases(), clusterCases(), hotCases(), fleetCases(), latencyCases(),
		deniedCases(), leaseCases(), driftCases(), libraryCases(), footprintCases(), openCases(), securedCases(), httpCases(), pauseCases(), redisBenchmarkCases(), garbageCases(), coresCases(), cellCases(), rlsCases())
}

// compare returns a case that is a pair.
func compare(name, title, about string, subject, yardstick side, figures ...want) Case {
	p := &pair{subject: subject, yardstick: yardstick, figures: figures}
	return Case{Name: name, Title: title, About: about, run: p.measure}
}

// The traffic of most cases: many tenants, all equally likely.
const (
	tenants     = 10_000
	manyTenants = 1_000_000
	// zipfExponent makes the most popular of 10,000 tenants send about a sixth of all
	// requests.
	zipfExponent = 1.1
)

func uniform(conns, pipeline int) traffic {
	return traffic{conns: conns, pipeline: pipeline, keys: func() load.Keys { return load.Uniform(tenants) }}
}

func zipf(conns, pipeline int) traffic {
	return traffic{conns: conns, pipeline: pipeline, keys: func() load.Keys { return load.Zipf(tenants, zipfExponent) }}
}

func hot(conns, pipeline int) traffic {
	return traffic{conns: conns, pipeline: pipeline, keys: func() load.Keys { return load.Hot(1) }}
}

// every returns traffic for n tenants that have all been seen before.
func every(n int, t traffic) traffic {
	t.fill, t.keys = n, func() load.Keys { return load.Uniform(n) }
	return t
}
