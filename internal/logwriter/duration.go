package logwriter

import "log/slog"

// DurationText returns a ReplaceAttr for a handler of JSON that writes a duration as text, such as 1m30s, where the handler writes
// nanoseconds without a unit. All other attributes are those of replace. It may be called concurrently if replace may.
func DurationText(replace func(groups []string, a slog.Attr) slog.Attr) func(groups []string, a slog.Attr) slog.Attr {
	return func(groups []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			return slog.String(a.Key, a.Value.Duration().String())
		}
		return replace(groups, a)
	}
}
