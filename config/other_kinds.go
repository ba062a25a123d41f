package config

import "regexp"

// NginxBlock matches a line of a configuration of nginx.
var NginxBlock = regexp.MustCompile(`(?m)^\s*(?:(?:http|server|events)\s*\{|limit_req_zone\s|include\s+\S+;)`)

// yamlLine matches a line of a limits file or of a list, in YAML that may have a mistake elsewhere.
var yamlLine = regexp.MustCompile(`(?m)^(?:(?:version|default_plan|plans|shared|tenants|lists|dimensions|_format_version|domain)[ \t]*:|- )`)

// IsNginx reports whether content is a configuration of nginx, and no YAML, with or without a mistake.
func IsNginx(content []byte) bool {
	return NginxBlock.Match(content) && !yamlLine.Match(content) && mappingOf(content) == nil
}

// KindOf recognizes a file that is none of Envoy's limits: it returns its kind, and the command of limitgate that reads it, or "".
func KindOf(content []byte) (kind, command string) {
	switch root := mappingOf(content); {
	case root == nil:
	case hasLimits(root) && !isEnvoys(root):
		return "a limits file", "limits lint"
	case hasKey(root, "_format_version") && !hasKey(root, "domain"):
		return "a configuration of Kong", "limits import kong"
	}
	if NginxBlock.Match(content) {
		return "a configuration of nginx", "limits import nginx"
	}
	return "", ""
}
