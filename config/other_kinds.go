package config

import (
	"regexp"

	"go.yaml.in/yaml/v4"
)

// NginxBlock matches a line of a configuration of nginx.
var NginxBlock = regexp.MustCompile(`(?m)^\s*(?:(?:http|server|events)\s*\{|limit_req_zone\s)`)

// KindOf recognizes a file that is none of Envoy's limits: it returns its kind, and the command of limitgate that reads it, or "".
func KindOf(content []byte) (kind, command string) {
	is := func(key string) bool {
		return isMapping(content, func(root *yaml.Node) bool { return hasKey(root, key) && !hasKey(root, "domain") })
	}
	switch {
	case IsLimits(content) && !IsEnvoys(content):
		return "a limits file", "limits lint"
	case is("_format_version"):
		return "a configuration of Kong", "limits import kong"
	case NginxBlock.Match(content):
		return "a configuration of nginx", "limits import nginx"
	}
	return "", ""
}
