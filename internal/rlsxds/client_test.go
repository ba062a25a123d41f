package rlsxds

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestNew checks the options that cannot be used.
func TestNew(t *testing.T) {
	for name, row := range map[string]struct {
		options Options
		want    string
	}{
		"good":             {Options{Server: "[::1]:1", NodeID: "n", Metadata: map[string]any{"a": nil}, Headers: map[string]string{"A.b_c-1": " ~", "b-bin": "\x00"}}, ""},
		"no port":          {Options{Server: "host"}, "read address of xDS server: address host: missing port in address"},
		"no address":       {Options{}, "read address of xDS server: "},
		"a URL":            {Options{Server: "http://host:1"}, "read address of xDS server: "},
		"a node of bytes":  {Options{Server: "h:1", NodeID: "\xff"}, "read node id: "},
		"metadata":         {Options{Server: "h:1", Metadata: map[string]any{"a": t}}, "read node metadata: "},
		"metadata of byte": {Options{Server: "h:1", Metadata: map[string]any{"\xff": 1}}, "read node metadata: "},
		"no name":          {Options{Server: "h:1", Headers: map[string]string{"": "hunter2"}}, `read headers for xDS server: "" is no name`},
		"a name":           {Options{Server: "h:1", Headers: map[string]string{"a b": "hunter2"}}, `"a b" is no name of a header`},
		"a pseudo-header":  {Options{Server: "h:1", Headers: map[string]string{":path": "hunter2"}}, `":path" is no name of a header`},
		"our header":       {Options{Server: "h:1", Headers: map[string]string{"User-Agent": "hunter2"}}, `"User-Agent" is a header of gRPC itself`},
		"a gRPC header":    {Options{Server: "h:1", Headers: map[string]string{"grpc-timeout": "1S"}}, `"grpc-timeout" is a header of gRPC itself`},
		"a line":           {Options{Server: "h:1", Headers: map[string]string{"a": "hunter2\r\n"}}, `the value of "a" has a character`},
		"letters":          {Options{Server: "h:1", Headers: map[string]string{"a": "hunter2é"}}, `the value of "a" has a character`},
		"twice":            {Options{Server: "h:1", Headers: map[string]string{"a": "hunter2", "A": "hunter2"}}, `is set twice`},
	} {
		row.options.Log = discard()
		_, err := New(row.options)
		if (err == nil) != (row.want == "") || err != nil && (!strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v, want %s", name, err, row.want)
		}
	}
}

// TestShorten checks that the texts of errors are bounded and UTF-8.
func TestShorten(t *testing.T) {
	for _, text := range []string{
		"", "short", strings.Repeat("x", maxReason), strings.Repeat("x", maxReason+1), strings.Repeat("é", maxReason), "x" + strings.Repeat("é", maxReason),
		"a\xffb", strings.Repeat("\xff", 2*maxReason), strings.Repeat("\x80", 2*maxReason),
	} {
		got := shorten(errors.New(text)).Error()
		if len(got) > maxReason || !utf8.ValidString(got) {
			t.Errorf("%d bytes of %.10q become %d of %.10q", len(text), text, len(got), got)
		}
		if len(text) <= maxReason && utf8.ValidString(text) && got != text || len(text) > maxReason && !strings.HasSuffix(got, "...") {
			t.Errorf("%.20q becomes %.20q", text, got)
		}
	}
}
