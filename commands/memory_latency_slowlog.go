package commands

import (
	"context"
	"runtime/metrics"
)

// Minimal MEMORY, LATENCY and SLOWLOG: people and monitors try them. The figures that
// they look for are on /metrics.

// memoryInUse returns how many bytes the process got from the system and uses.
func memoryInUse() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}

func memoryStats(_ context.Context, s *Session, _ [][]byte) {
	s.out.mapping(2)
	s.out.pair("total.allocated", memoryInUse())
	s.out.pair("keys.count", 0)
}

// memoryUsage replies that there is no such key.
func memoryUsage(_ context.Context, s *Session, args [][]byte) {
	for rest := args[3:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 || !equalFold(rest[0], "SAMPLES") {
			s.out.error(syntaxError)
			return
		}
		switch n, ok := parseInteger(rest[1]); {
		case !ok:
			s.out.error(notAnInteger)
			return
		case n < 0:
			s.out.error(syntaxError)
			return
		}
	}
	s.out.null()
}

func memoryDoctor(_ context.Context, s *Session, _ [][]byte) {
	s.out.text("No keys are kept here. The metrics of the admin address say what the process uses.\n")
}

func latencyDoctor(_ context.Context, s *Session, _ [][]byte) {
	s.out.text("No latencies are recorded here. The metrics of the admin address have histograms.\n")
}

func latencyGraph(_ context.Context, s *Session, args [][]byte) {
	s.out.error("ERR No samples available for event '" + quote(args[2]) + "'")
}

func slowlogGet(_ context.Context, s *Session, args [][]byte) {
	if len(args) > 3 {
		s.out.error(subcommandError(args))
		return
	}
	if len(args) == 3 {
		if n, ok := parseInteger(args[2]); !ok || n < -1 {
			s.out.error("ERR count should be greater than or equal to -1")
			return
		}
	}
	s.out.array(0)
}

// nothing replies with an empty array, and nothingNamed with an empty map.
func nothing(_ context.Context, s *Session, _ [][]byte) { s.out.array(0) }

func nothingNamed(_ context.Context, s *Session, _ [][]byte) { s.out.mapping(0) }
