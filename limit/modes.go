package limit

// Mode is whether a limit is enforced, only evaluated, or off.
type Mode uint8

// The modes.
const (
	ModeEnforce Mode = iota // decides
	ModeShadow              // is evaluated and counted, never changes an answer
	ModeOff                 // is as if the limit did not exist
)

// String returns the name used in limits files and metrics.
func (m Mode) String() string {
	switch m {
	case ModeShadow:
		return "shadow"
	case ModeOff:
		return "off"
	default:
		return "enforce"
	}
}

// Action is the effect of a limit on the requests to which it applies.
type Action uint8

// The actions.
const (
	ActionLimit Action = iota // counts them against a rate
	ActionDeny                // denies them
	ActionAllow               // exempts them from the other limits of its level, or without by from all that count
)

// String returns the name used in limits files; a counting limit has none.
func (a Action) String() string {
	switch a {
	case ActionDeny:
		return "deny"
	case ActionAllow:
		return "allow"
	default:
		return "limit"
	}
}

// OnError is the rule for a limit's requests while the store is unavailable.
type OnError uint8

// The rules for an unavailable store.
const (
	OnErrorOpen   OnError = iota // the backstop decides
	OnErrorClosed                // they are denied
)

// String returns the name used in limits files.
func (o OnError) String() string {
	if o == OnErrorClosed {
		return "closed"
	}
	return "open"
}

// Missing is the rule for a request that lacks a dimension by which the limit counts.
type Missing uint8

// The rules for a missing dimension.
const (
	MissingPass  Missing = iota // the limit does not apply
	MissingDeny                 // the request is denied
	MissingShare                // all such requests share one bucket
)

// String returns the name used in limits files.
func (m Missing) String() string {
	switch m {
	case MissingDeny:
		return "deny"
	case MissingShare:
		return "share"
	default:
		return "pass"
	}
}
