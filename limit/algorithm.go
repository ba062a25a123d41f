package limit

// Algorithm says how a limit counts.
type Algorithm uint8

// The algorithms. A fixed window whose rate is per day or per month (in words)
// is a calendar window: the same algorithm, with windows that a calendar cuts.
const (
	AlgorithmTokenBucket Algorithm = iota + 1
	AlgorithmSlidingWindow
	AlgorithmFixedWindow
	AlgorithmCalendarWindow
	AlgorithmSlidingLog
	AlgorithmConcurrency
)

// String returns the name used in limits files.
func (a Algorithm) String() string {
	switch a {
	case AlgorithmTokenBucket:
		return "token_bucket"
	case AlgorithmSlidingWindow:
		return "sliding_window"
	case AlgorithmFixedWindow, AlgorithmCalendarWindow:
		return "fixed_window"
	case AlgorithmSlidingLog:
		return "sliding_log"
	case AlgorithmConcurrency:
		return "concurrency"
	default:
		return "unknown"
	}
}

// code is the letter that stands for the algorithm in a bucket's name, so that
// a limit whose algorithm changes starts afresh.
func (a Algorithm) code() byte {
	switch a {
	case AlgorithmTokenBucket:
		return 't'
	case AlgorithmSlidingWindow:
		return 's'
	case AlgorithmSlidingLog:
		return 'l'
	case AlgorithmConcurrency:
		return 'c'
	default:
		return 'f'
	}
}

// Mode says whether a limit decides, watches or sleeps.
type Mode uint8

// The modes.
const (
	ModeEnforce Mode = iota // decides
	ModeShadow              // is evaluated and counted, never changes an answer
	ModeOff                 // is as if it were not there
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

// Action says what a limit does to the requests it applies to.
type Action uint8

// The actions.
const (
	ActionLimit Action = iota // counts them against a rate
	ActionDeny                // refuses them
	ActionAllow               // passes the level for them
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

// OnError says what happens to a limit's requests while the store is sick.
type OnError uint8

// The rules for a sick store.
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

// Missing says what happens to a request that lacks a dimension the limit
// counts by.
type Missing uint8

// The rules for a missing dimension.
const (
	MissingPass  Missing = iota // the limit is passed over
	MissingDeny                 // the request is refused
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
