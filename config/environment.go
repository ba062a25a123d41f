package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// envPrefix is the prefix of limitgate's variables.
const envPrefix = "LIMITGATE_"

// buildVariables are used for building and testing limitgate.
var buildVariables = []string{
	"LIMITGATE_ALL", "LIMITGATE_APT", "LIMITGATE_BREW", "LIMITGATE_DYNAMODB", "LIMITGATE_MOTO", "LIMITGATE_PROMTOOL", "LIMITGATE_REDIS_BIN", "LIMITGATE_SEED", "LIMITGATE_WITHOUT_AWS",
}

// serviceVariable matches variables that Kubernetes sets in every pod of a namespace with
// a Service called limitgate, or limitgate-anything. No user has set them, and a proxy
// that rejected them would not start. servicePort matches those whose value is a URL.
var (
	serviceVariable = regexp.MustCompile(`^LIMITGATE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	servicePort     = regexp.MustCompile(`^LIMITGATE_(\w+_)?PORT$`)
)

// readEnvironment reads limitgate's variables, in the order of their names.
func readEnvironment(t settings, environ []string) *source {
	src := new(source)
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || !strings.HasPrefix(name, envPrefix) {
			continue
		}
		place := "env " + name
		r, warning := t.find((*setting).env, envName, name)
		switch {
		case r == nil && (slices.Contains(buildVariables, name) || isOfService(name, text)):
		case r == nil:
			src.failUnknownVariable(t, name)
		case r.source == flagsOnly:
			src.fail(0, "%s: only the flag %s does that", place, r.flag())
		default:
			src.add(given{setting: r, text: text, source: place, place: place}, name, warning)
		}
	}
	return src
}

// isOfService reports whether a variable is one of a Service. A PORT that is no URL is a user's, for the
// address of another setting.
func isOfService(name, text string) bool {
	return serviceVariable.MatchString(name) || servicePort.MatchString(name) && (text == "" || strings.Contains(text, "://"))
}

func (src *source) failUnknownVariable(t settings, name string) {
	hint := "limitgate serve --help lists them"
	// Without the prefix, which would make all names similar.
	key := func(r *setting) string { return strings.TrimPrefix(r.env(), envPrefix) }
	if r := t.settingOfOther(strings.TrimPrefix(name, envPrefix), outsideFile); r != nil {
		hint = "did you mean " + r.env() + "?"
		if name == "LIMITGATE_ADDR" { // after the flag of the commands that ask a limitgate
			hint += " The commands that ask a limitgate read it too, and take --addr"
		}
	} else if near := limit.Nearest(strings.TrimPrefix(name, envPrefix), t.keys(key, outsideFile)); near != "" {
		hint = "did you mean " + envPrefix + near + "?"
	}
	src.fail(0, "env %s: unknown variable; %s", plain(name), hint)
}
