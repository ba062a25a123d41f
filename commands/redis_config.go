package commands

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// redisSettings are the settings that clients, exporters and redis-benchmark read, with
// values that do not depend on the proxy.
var redisSettings = map[string]string{
	"appendonly":             "no",
	"cluster-enabled":        "yes",
	"databases":              "1",
	"maxmemory":              "0",
	"maxmemory-policy":       "noeviction",
	"notify-keyspace-events": "",
	"replica-read-only":      "yes",
	"save":                   "",
	"slave-read-only":        "yes",
}

// newSettings merges redisSettings with the settings of this proxy.
func newSettings(opts Options) map[string]string {
	all := maps.Clone(redisSettings)
	maps.Copy(all, opts.Settings)
	if opts.LogLevel != nil {
		all[logLevelName] = ""
	}
	return all
}

// configGet replies with the settings that match any of the patterns, as a map.
func configGet(_ context.Context, s *Session, args [][]byte) {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(s.h.settings)) {
		if slices.ContainsFunc(args[2:], func(pattern []byte) bool { return glob(pattern, name) }) {
			found = append(found, name)
		}
	}
	s.out.mapping(len(found))
	for _, name := range found {
		value := s.h.settings[name]
		if name == logLevelName && s.h.opts.LogLevel != nil {
			value = strings.ToLower(s.h.opts.LogLevel.Level().String())
		}
		s.out.pair(name, value)
	}
}

// logLevelName is the one setting that CONFIG SET changes.
const logLevelName = "loglevel"

// logLevels are the levels of the log by their names here and in Redis.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	"verbose": slog.LevelDebug, "notice": slog.LevelInfo, "warning": slog.LevelWarn,
}

// configSet changes the level of the log until the proxy ends. For anything else it replies with an
// error: settings come from flags, the environment and the file.
func configSet(_ context.Context, s *Session, args [][]byte) {
	if len(args)%2 != 0 {
		s.out.error(syntaxError)
		return
	}
	if len(args) == 4 && equalFold(args[2], "LOGLEVEL") && s.h.opts.LogLevel != nil {
		level, ok := logLevels[strings.ToLower(string(args[3]))]
		if !ok {
			s.out.error("ERR CONFIG SET failed (possibly related to argument 'loglevel') - argument must be one of the following: debug, info, warn, error")
			return
		}
		s.h.opts.LogLevel.Set(level)
		s.out.ok()
		return
	}
	for i := 2; i < len(args); i += 2 {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(s.h.settings)), func(name string) bool { return equalFold(args[i], name) }) {
			s.out.error("ERR Unknown option or number of arguments for CONFIG SET - '" + quote(args[i]) + "'")
			return
		}
	}
	s.out.error("ERR CONFIG SET failed (possibly related to argument '" + quote(args[2]) + "') - can't set immutable config: loglevel alone changes while it runs, the others are settings of limitgate serve")
}

func configRewrite(_ context.Context, s *Session, _ [][]byte) {
	s.out.error("ERR The server is running without a config file")
}
