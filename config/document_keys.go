package config

import (
	"slices"
	"strings"
)

const (
	listsAdvice  = "limits that plans share stand in lists, by a name: write lists: {NAME: [...]}, and - include: NAME in a plan"
	sharedAdvice = "limits of a plan stand in plans, by its name, those that several plans have in lists, and those that count without the tenant in shared"
	exemptAdvice = "write a limit among shared: {id: exempt, when: {tenant: acme}, action: allow}, or when: {ip: 203.0.113.0/24}"
	bannedAdvice = "write a limit among shared: {id: banned, when: {tenant: acme}, action: deny}, or when: {ip: 203.0.113.0/24}"
)

// otherDocumentKeys are names, as folded returns them, that a part of a limits file has elsewhere, with what to write in the place of them.
var otherDocumentKeys = map[string]string{
	"include": listsAdvice, "includes": listsAdvice, "templates": listsAdvice, "definitions": listsAdvice, "anchors": listsAdvice,
	"global": sharedAdvice, "globals": sharedAdvice, "defaults": sharedAdvice, "defaultlimits": sharedAdvice, "rules": sharedAdvice,
	"whitelist": exemptAdvice, "allowlist": exemptAdvice, "exempt": exemptAdvice,
	"blacklist": bannedAdvice, "blocklist": bannedAdvice, "denylist": bannedAdvice, "banned": bannedAdvice,
}

// isOtherDocumentKey reports whether a key is more likely such a name than that of a plan or a tenant.
func isOtherDocumentKey(key string) bool {
	return otherDocumentKeys[folded(key)] != "" || strings.HasPrefix(key, "x-")
}

// otherDocumentKey returns what to write in the place of a key that a limits file has not, or "" if it may be misspelt.
func otherDocumentKey(unknown string) string {
	if strings.HasPrefix(unknown, "x-") { // of files of Compose, for what others refer to
		return listsAdvice
	}
	if advice := otherDocumentKeys[folded(unknown)]; advice != "" {
		return advice
	}
	if unknown == "limits" { // which is more often a list of limits than the setting
		return ""
	}
	settings := settingsFile{table: newTable(&Settings{})}
	if slices.Contains(settings.table.keys((*setting).key, anywhere), unknown) || settings.isSection(unknown) {
		return "it is a setting of serve, and no part of the limits: write it in the file of --config"
	}
	return ""
}
