package rlsconfig

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"
)

// drawn is a random descriptor of a configuration.
type drawn struct {
	number  int // unlike that of any other, and its limit
	key     string
	value   string
	limited bool
	shared  bool
	below   []drawn
}

// The words of random configurations and requests: those that a joined name confuses, patterns, and
// characters that have a meaning in a name or in YAML.
var (
	drawnKeys     = []string{"a", "a_b", "b", "b_c", "remote_address", "x=y", "x:y"}
	drawnValues   = []string{"", "c", "b_c", "c_d", "*", "c*", "*d", "c*d", "c*c*", "c*c", "*c*c*", "c*:", "#", "%", "a;b", "=", `"`, "a: b", "*é", strings.Repeat("c", 300), strings.Repeat("c", 300) + "*"}
	requestValues = append([]string{"cd", "cc", "ccd", "cxd", "c:", "c:d", "%3B", "%#", "xé", "\xff", strings.Repeat("c", 301), strings.Repeat("c", 302)}, drawnValues...)
)

// drawLevel draws the descriptors of a level and those below.
func drawLevel(t *rapid.T, depth int, number *int) []drawn {
	one := rapid.Custom(func(t *rapid.T) drawn {
		return drawn{key: rapid.SampledFrom(drawnKeys).Draw(t, "key"), value: rapid.SampledFrom(drawnValues).Draw(t, "value"), limited: rapid.Bool().Draw(t, "limited")}
	})
	level := rapid.SliceOfNDistinct(one, 0, 6, func(d drawn) [2]string { return [2]string{d.key, d.value} }).Draw(t, "level")
	for i := range level {
		d := &level[i]
		*number++
		d.number = *number
		d.shared = strings.Contains(d.value, "*") && rapid.Bool().Draw(t, "shared")
		if depth > 1 {
			d.below = drawLevel(t, depth-1, number)
		}
	}
	return level
}

// drawEntries draws the entries of a request.
func drawEntries(t *rapid.T) []Entry {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Entry {
		return Entry{rapid.SampledFrom(drawnKeys).Draw(t, "key"), rapid.SampledFrom(requestValues).Draw(t, "value")}
	}), 0, 4).Draw(t, "entries")
}

// writeYAML writes a level as YAML.
func writeYAML(b *strings.Builder, level []drawn, indent string) {
	for _, d := range level {
		fmt.Fprintf(b, "%s- key: %q\n%s  metadata: {number: %d}\n", indent, d.key, indent, d.number)
		if d.value != "" {
			fmt.Fprintf(b, "%s  value: %q\n", indent, d.value)
		}
		if d.limited {
			fmt.Fprintf(b, "%s  rate_limit: {unit: week, requests_per_unit: %d}\n", indent, d.number)
		}
		if d.shared {
			fmt.Fprintf(b, "%s  share_threshold: true\n", indent)
		}
		if d.below != nil {
			fmt.Fprintf(b, "%s  descriptors:\n", indent)
			writeYAML(b, d.below, indent+"  ")
		}
	}
}

// fileOf returns the file of a domain.
func fileOf(domain string, level []drawn) File {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: %q\ndescriptors:\n", domain)
	writeYAML(&b, level, "")
	return File{"file of " + domain, []byte(b.String())}
}

// resourceOf returns the message of a domain. It has no share_threshold.
func resourceOf(name, domain string, level []drawn) []byte {
	return append(appendString(appendString(nil, 1, name), 2, domain), appendLevel(nil, 3, level)...)
}

func appendString(dst []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, number, protowire.BytesType), text)
}

func appendNumber(dst []byte, number protowire.Number, value int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), uint64(value))
}

// appendLevel appends descriptors as a field.
func appendLevel(dst []byte, number protowire.Number, level []drawn) []byte {
	for _, d := range level {
		m := appendString(appendString(nil, 1, d.key), 2, d.value)
		if d.limited {
			m = appendString(m, 3, string(appendNumber(appendNumber(nil, 1, int(UnitWeek)), 2, d.number)))
		}
		m = appendLevel(m, 4, d.below)
		metadata, _ := proto.Marshal(&structpb.Struct{Fields: map[string]*structpb.Value{"number": structpb.NewNumberValue(float64(d.number))}})
		m = appendString(m, 8, string(metadata))
		dst = appendString(dst, number, string(m))
	}
	return dst
}
