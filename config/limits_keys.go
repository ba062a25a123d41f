package config

import (
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// otherKeys are keys of other limiters as folded returns them, with what to write in the place of them in a limit.
var otherKeys = map[string]string{
	"maxburst":   "write burst, which is max_burst + 1", // of redis-cell
	"burstlimit": "write burst", "bucketsize": "write burst", "burstsize": "write burst", "burstcapacity": "write burst",
	"limit": rateKey, "requests": rateKey, "max": rateKey, "maxrequests": rateKey, "points": rateKey, "permits": rateKey, "limitforperiod": rateKey, "count": rateKey, "quota": rateKey, "capacity": rateKey,
	"window": rateKey, "windowms": rateKey, "windowseconds": rateKey, "windowsize": rateKey, "limitrefreshperiod": rateKey, "period": rateKey, "interval": rateKey, "per": rateKey, "duration": rateKey, "unit": rateKey, "requestsperunit": rateKey,
	"rps": rateKey, "qps": rateKey, "rpm": rateKey, "rph": rateKey, "ratelimit": rateKey, "tokens": rateKey, "limiter": rateKey, "second": rateKey, "minute": rateKey, "hour": rateKey, "day": rateKey, "month": rateKey, "refill": rateKey, "refillrate": rateKey,
	"failopen":        "write on_error: open, or on_error: closed in the place of false",
	"failclosed":      "write on_error: closed, or on_error: open in the place of false",
	"failuremodedeny": "write on_error: closed, or on_error: open in the place of false",
	"onfail":          onErrorKey, "onfailure": onErrorKey, "failmode": onErrorKey, "failuremode": onErrorKey, "fallback": onErrorKey, "onstoreerror": onErrorKey,
	"tenant": tenantConditionKey, "tenants": tenantsKey,
	"plan": planKey, "ip": ipKey,
	"user": userKey, "users": userKey,
	"priority": priorityKey, "order": priorityKey, "weight": priorityKey,
	"key": byKey, "keys": byKey, "groupby": byKey, "dimensions": byKey, "descriptors": byKey, "pertenant": byKey, "scope": byKey, "limitby": byKey, "peruser": byKey, "perip": byKey,
	"path": whenKey, "paths": whenKey, "route": whenKey, "url": whenKey, "endpoint": whenKey, "match": whenKey, "op": whenKey, "ops": whenKey, "method": whenKey, "methods": whenKey,
	"name": "write id: NAME", "dryrun": "write mode: shadow", "shadow": "write mode: shadow", "shadowmode": "write mode: shadow", "enabled": "write mode: enforce or mode: off",
	"hash":          "write dimensions: {NAME: {hash: true}} at the beginning of the file, for a dimension that limits count by",
	"maxconcurrent": slotsKey, "concurrency": slotsKey, "concurrent": slotsKey, "maxconcurrency": slotsKey, "maxinflight": slotsKey, "inflight": slotsKey,
	"algo": algorithmKey, "type": algorithmKey, "strategy": algorithmKey, "policy": algorithmKey, "kind": algorithmKey,
	"except": allowKey, "exempt": allowKey, "exclude": allowKey, "excluding": allowKey, "unless": allowKey, "skip": allowKey, "allow": allowKey, "allowlist": allowKey, "whitelist": allowKey, "bypass": allowKey,
	"description": commentKey, "comment": commentKey, "note": commentKey,
	"tz":    "write timezone: Europe/Berlin, beside algorithm: fixed_window",
	"delay": delayKey, "nodelay": delayKey, "wait": delayKey,
	"header": headerKey, "headers": headerKey,
	"ttl": ttlKey, "timeout": ttlKey, "expiry": ttlKey,
	"blockduration": blockKey, "blockfor": blockKey, "banduration": blockKey, "penalty": blockKey, "cooldown": blockKey,
	"status": answerKey, "statuscode": answerKey, "errorcode": answerKey, "response": answerKey, "message": answerKey, "errormessage": answerKey,
}

const (
	rateKey            = "write the number and its period in rate: COUNT/PERIOD, for example rate: 100/m"
	byKey              = "write by: [tenant, op], with the dimensions that it counts by"
	bySharedKey        = "write by: [ip], with the dimensions that it counts by; a limit that counts by tenant belongs to a plan"
	onErrorKey         = "write on_error: open or on_error: closed"
	tenantConditionKey = "write when: {tenant: acme}"
	planKey            = "a limit is of the plan in whose list it stands: move it there"
	ipKey              = "write when: {ip: 203.0.113.0/24}, or by: [ip]"
	tenantsKey         = "write a limit for each tenant, with when: {tenant: acme}, or a plan for all of them"
	userKey            = "write when: {user: u1}, or by: [tenant, user] for a bucket of each"
	priorityKey        = "the most specific limit of a level and group applies: leave it out, or write group: NAME for a limit that counts beside the others"
	slotsKey           = "write algorithm: concurrency and slots: 20"
	algorithmKey       = "write algorithm: token_bucket, or one of concurrency, fixed_window, sliding_log and sliding_window"
	allowKey           = "write another limit for these, with the same by, a narrower when and action: allow, as in docs/limits.md"
	commentKey         = "write it in a comment, behind #"
	delayKey           = "leave it out: an answer never waits, and a denied caller gets the time after which it may try again"
	ttlKey             = "leave it out: RL.ACQUIRE has the TTL of a slot, and a bucket expires when it is full"
	blockKey           = "leave it out: a limit denies until a request fits again, and no longer"
	answerKey          = "leave it out: a service answers its callers with the result of a check"
	headerKey          = "services send the value as a dimension: write when: {NAME: VALUE}, or by with NAME for a bucket of each"
	// ofOverriddenKey is about a key that would change which requests an override is for.
	ofOverriddenKey = "an override is for the requests of its limit: write another limit among shared, with when: {tenant: acme}"
	whenKey         = `write when: {op: "POST /v1/payments*"}, and by with op for a bucket of each`
)

// requestKeys are about keys that say for which requests a limit is, and by what it counts: no override has these.
var requestKeys = []string{tenantConditionKey, tenantsKey, planKey, ipKey, userKey, priorityKey, byKey, whenKey}

// folded returns a key in lower case without - and _, as limiters differ in how they write windowMs and window_ms.
func folded(key string) string { return separators.Replace(strings.ToLower(key)) }

var separators = strings.NewReplacer("_", "", "-", "")

// didYouMean begins advice with the one key that is meant.
const didYouMean = "did you mean "

// knownKeys returns advice about an unknown key: the key that belongs in its place, or those that are known.
func knownKeys(unknown, field string, names []string) string {
	if field == "limits" {
		return "limits stand in plans, by the name of each plan, and in shared"
	}
	if (unknown == "overrides" || unknown == "override") && slices.Contains(names, "tenants") {
		return "overrides belong to a tenant: write tenants: {NAME: {overrides: {ID: {rate: 500/s}}}}, with the id of a limit of its plan"
	}
	if slices.Contains(names, "plans") && slices.Contains(limitKeys, unknown) {
		return indentLimitKey
	}
	if other := otherKeys[folded(unknown)]; other != "" && slices.Contains(names, "when") {
		if strings.HasPrefix(field, "tenants.") && slices.Contains(requestKeys, other) {
			return ofOverriddenKey
		}
		if other == byKey && strings.HasPrefix(field, "shared") {
			return bySharedKey
		}
		return other
	}
	if strings.HasPrefix(field, "tenants.") && slices.Contains(names, "when") {
		if unknown == "id" {
			return "leave it out: the name of the override is the id of the limit of the plan"
		}
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(fixedKeys, name) })
	}
	if other := tenantKey(unknown, field); other != "" && slices.Contains(names, "overrides") {
		return other
	}
	if unknown == "default" && slices.Contains(names, "default_plan") {
		return didYouMean + "default_plan?"
	}
	if near := limit.Nearest(unknown, names); near != "" {
		return didYouMean + near + "?"
	}
	return "the keys are " + strings.Join(names, ", ")
}

// fixedKeys are keys of a limit that an override cannot have: it says so of each.
var fixedKeys = []string{"by", "group", "replaces", "when"}

// banKeys are keys that keep a tenant out in other limiters.
var banKeys = []string{"banned", "ban", "blocked", "block", "deny", "denied", "disabled", "suspended", "blacklist", "blacklisted"}

// overriddenKeys are keys of a limit that an override may have, beside limitKeys.
var overriddenKeys = []string{"warn", "enforce", "action", "missing", "timezone", "cost", "max_cost", "store"}

// tenantKey returns what to write in the place of a key that other limiters have in a tenant, or that belongs
// to a limit of it, or "".
func tenantKey(unknown, field string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(field, "tenants."), "."+unknown)
	switch {
	case slices.Contains(banKeys, strings.ToLower(unknown)):
		return "a tenant is banned by a limit among shared: {id: banned, when: {tenant: " + plain(name) + "}, action: deny}"
	case unknown == "limits" || unknown == "limit":
		return "write plan: NAME, and overrides: {ID: {rate: 500/s}} for what differs from the plan"
	case slices.Contains(limitKeys, unknown) || slices.Contains(overriddenKeys, unknown):
		return "it belongs to a limit: write overrides: {ID: {" + unknown + ": ...}}, with the id of a limit of its plan"
	case otherKeys[folded(unknown)] == rateKey:
		return "write overrides: {ID: {rate: 500/s}}, with the id of a limit of its plan"
	}
	return ""
}
