package config

import "strings"

const (
	listsAdvice  = "limits that plans share stand in lists, by a name: write lists: {NAME: [...]}, and - include: NAME in a plan"
	sharedAdvice = "limits of a plan stand in plans, by its name, those that several plans have in lists, and those that count without the tenant in shared"
	exemptAdvice = "write a limit among shared: {id: exempt, when: {tenant: acme}, action: allow}, or when: {ip: 203.0.113.0/24}"
	bannedAdvice = "write a limit among shared: {id: banned, when: {tenant: acme}, action: deny}, or when: {ip: 203.0.113.0/24}"
)

// documentAdvice has keys that files of other software have at their beginning, as folded returns them, with what to write in a limits file.
var documentAdvice = map[string]string{
	"include": listsAdvice, "includes": listsAdvice, "templates": listsAdvice, "definitions": listsAdvice, "anchors": listsAdvice,
	"global": sharedAdvice, "globals": sharedAdvice, "defaults": sharedAdvice, "defaultlimits": sharedAdvice, "rules": sharedAdvice,
	"whitelist": exemptAdvice, "allowlist": exemptAdvice, "exempt": exemptAdvice,
	"blacklist": bannedAdvice, "blocklist": bannedAdvice, "denylist": bannedAdvice, "banned": bannedAdvice,
}

// foreignKeyAdvice returns what to write in the place of a key that other software has at the beginning of a file, or "".
func foreignKeyAdvice(key string) string {
	if strings.HasPrefix(key, "x-") { // of files of Compose, for what others refer to
		return listsAdvice
	}
	return documentAdvice[folded(key)]
}

// settingAdvice returns where a key belongs that is a setting, or "". A key limits is more often a list of limits.
func settingAdvice(key string) string {
	settings := settingsFile{table: newTable(&Settings{})}
	named := settings.table.named(key) // by a former name, too
	if key != "limits" && (named != nil && named.source == anywhere || settings.isSection(key)) {
		return "it is a setting of serve, and no part of the limits: write it in the file of --config"
	}
	return ""
}
