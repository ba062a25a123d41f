package logwriter

import "log/slog"

// DurationText writes a duration as text, such as 1m30s, as the ReplaceAttr of a handler of JSON, which writes a number of nanoseconds
// without a unit. It may be called concurrently.
func DurationText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
