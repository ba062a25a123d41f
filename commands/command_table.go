package commands

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/limitgate/limitgate/limit"
)

// row is a row of the command table: it drives dispatch, arity, COMMAND and
// RL.HELP.
type row struct {
	name    string // lower case
	arity   int    // as in Redis: with the name; negative for a minimum
	group   string
	flags   []string
	usage   string // the arguments, see parseUsage
	summary string
	run     func(ctx context.Context, s *Session, args [][]byte)
}

// command is a row with the values derived from it.
type command struct {
	row
	full      string              // the name; of a subcommand with its container's and | in front
	subs      map[string]*command // of a container, otherwise nil
	arguments []argument
	keys      keyRange
	weight    weight
	access    access
	grows     bool // see growingCommands
}

func (c *command) takes(args int) bool {
	if c.arity < 0 {
		return args >= -c.arity
	}
	return args == c.arity
}

const (
	groupLimit      = "limitgate"
	groupConnection = "connection"
	groupServer     = "server"
	groupCluster    = "cluster"
)

const peekUsage = "tenant op ip [cost] [DIM name value [DIM name value ...]]"

func newTable() map[string]*command {
	fast, admin := []string{"fast"}, []string{"admin"}
	rows := []row{
		{"rl.check", -4, groupLimit, []string{"write", "fast"}, peekUsage + " [ID id] [HEADERS] [BYPASS token]", "Decide whether the cost may be taken now, and take it.", nil},
		{"rl.peek", -4, groupLimit, []string{"readonly", "fast"}, peekUsage + " [LIMIT id]", "The decision RL.CHECK would give; takes nothing.", peekCommand},
		{"rl.reserve", -5, groupLimit, []string{"write", "fast"}, "tenant op ip estimate [TTL ms] [ID id] [HEADERS] [DIM name value [DIM name value ...]]", "Take an estimated cost, to be settled when the true one is known.", nil},
		{"rl.commit", -3, groupLimit, []string{"write", "fast"}, "id actual | ID id TENANT tenant actual", "Settle a reservation to what was used.", settler(limit.HoldReservation, limit.ChangeCommit)},
		{"rl.cancel", -2, groupLimit, []string{"write", "fast"}, "id | ID id TENANT tenant", "Give back all that a reservation took.", settler(limit.HoldReservation, limit.ChangeCancel)},
		{"rl.acquire", -4, groupLimit, []string{"write", "fast"}, "tenant op ip [ID id] [TTL ms] [HEADERS] [DIM name value [DIM name value ...]]", "Take a slot of the limits of concurrency, beside a unit of the others.", nil},
		{"rl.renew", -2, groupLimit, []string{"write", "fast"}, "id [TTL ms] | ID id TENANT tenant [TTL ms]", "Hold a slot from now on for its time.", settler(limit.HoldSlot, limit.ChangeRenew)},
		{"rl.release", -2, groupLimit, []string{"write", "fast"}, "id | ID id TENANT tenant", "Give a slot back.", settler(limit.HoldSlot, limit.ChangeRelease)},
		{"rl.explain", -4, groupLimit, []string{"readonly"}, peekUsage, "Every limit considered, its bucket, and why it applies or not.", explainCommand},
		{"rl.limits", -1, groupLimit, []string{"readonly"}, "[tenant]", "The limits in force, with their version and source.", limitsCommand},
		{"rl.top", -1, groupLimit, []string{"readonly"}, "[n]", "The buckets asked for most in the last seconds, those that deny most, and the operations.", topCommand},
		{"rl.denied", -1, groupLimit, []string{"readonly"}, "[n]", "The last denials of this proxy, a sample of them.", deniedCommand},
		{"rl.reset", -2, groupLimit, admin, "tenant [limit_id]", "Forget the counters of a tenant, or (- limit_id) of a shared limit.", resetCommand},
		{"rl.refund", -5, groupLimit, admin, "tenant op ip cost [DIM name value [DIM name value ...]]", "Give units back to a tenant's own buckets, never above capacity.", refundCommand},
		{"rl.config", -2, groupLimit, admin, "VERSION | RELOAD | PROMOTE | ABORT | SHARDS", "Version, age and staleness of the limits; load them again; end a trial of limits; the breakers of the store.", configCommand},
		{"cl.throttle", -1, groupLimit, []string{"write", "fast"}, "key max_burst count period [quantity]", "A decision by a limit that comes with the call, as redis-cell answers.", nil},
		{"gcra", -5, groupLimit, []string{"write", "fast"}, "key max_burst tokens_per_period period [TOKENS count]", "A decision by a limit that comes with the call, as the GCRA command of Redis answered.", nil},
		{"throttle", -5, groupLimit, []string{"write", "fast"}, "key max_burst count_per_period period [quantity]", "A decision by a limit that comes with the call, as throttlecrab answers.", nil},
		{"rl.help", 1, groupLimit, fast, "", "These lines.", helpCommand},
	}
	return compile(append(rows, standardRows()...), subcommands())
}

// UsageOf returns a command of Limitgate with its arguments, or "" if there is no such command.
func UsageOf(name string) string {
	c := commandTable()[strings.ToLower(name)]
	if c == nil || c.group != groupLimit {
		return ""
	}
	return strings.TrimSpace(strings.ToUpper(c.name) + " " + c.usage)
}

// commandTable returns the table of all handlers, which none changes.
var commandTable = sync.OnceValue(newTable)

// maxCommandName is longer than the name of any command or subcommand.
const maxCommandName = 16

// named finds a command by its name, ignoring case.
func named(table map[string]*command, name []byte) *command {
	if len(name) > maxCommandName {
		return nil
	}
	var lower [maxCommandName]byte
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return table[string(lower[:len(name)])]
}

// insteadOf says what to do in the place of subcommands of Redis that change its users.
func insteadOf(container string, sub []byte) string {
	if container == "acl" && (equalFold(sub, "setuser") || equalFold(sub, "deluser") || equalFold(sub, "save")) {
		return " Users are in the file of --users: change it, and send ACL LOAD."
	}
	return ""
}

func (h *Handler) lookup(name []byte) *command { return named(h.table, name) }

// find returns the command or subcommand for args, or Redis' error if there is none or
// the number of arguments is wrong.
func (h *Handler) find(args [][]byte) (c *command, errReply string) {
	c = h.lookup(args[0])
	if c != nil && c.subs != nil && len(args) > 1 {
		container := c
		if c = named(container.subs, args[1]); c == nil {
			return nil, "ERR unknown subcommand '" + quote(args[1]) + "'. Try " + strings.ToUpper(container.name) + " HELP." + insteadOf(container.name, args[1])
		}
	}
	if c == nil {
		return nil, unknownCommand(args) + h.meant(args)
	}
	if c.takes(len(args)) {
		return c, ""
	}
	errReply = c.wrongNumber(args)
	if c.full == "exec" {
		errReply = execAborted + strings.TrimPrefix(errReply, "ERR ")
	}
	return nil, errReply
}

// wrongNumber returns Redis' error for a wrong number of arguments, which include the name. Those that
// are missing, and the usage, follow for Limitgate's own commands; clients may compare the texts of the
// others.
func (c *command) wrongNumber(args [][]byte) string {
	errReply := "ERR wrong number of arguments for '" + c.full + "' command"
	if strings.HasPrefix(c.full, ownPrefix) {
		errReply += c.missing(args[min(len(args), 1+strings.Count(c.full, "|")):])
		errReply += ": " + strings.TrimSpace(strings.ToUpper(strings.ReplaceAll(c.full, "|", " "))+" "+c.usage)
	}
	return errReply
}

func (h *Handler) wrongNumber(name string, args [][]byte) string {
	return h.table[name].wrongNumber(args)
}

// missing names the required arguments behind the given ones, if some were given.
func (c *command) missing(given [][]byte) string {
	var names []string
	for _, word := range strings.Fields(c.usage) {
		if !isValue(word) || strings.ContainsAny(word, "[|") {
			break
		}
		names = append(names, word)
	}
	if len(given) < 1 || len(given) >= len(names) {
		return ""
	}
	if op := slices.Index(names, "op"); op >= 0 && op < len(given) {
		if _, err := limit.ParseAddr(string(given[op])); err == nil {
			return ": the op is missing" // the address stands in its place
		}
	}
	names = names[len(given):]
	if last := len(names) - 1; names[last] == "ip" {
		names[last] = "ip (- for none)"
	}
	text := ": the " + strings.Join(names, " and the ")
	if len(names) == 1 {
		return text + " is missing"
	}
	return text + " are missing"
}

// ownPrefix begins the names of Limitgate's own commands.
const ownPrefix = "rl."

// maxArgsQuoted is the maximum number of bytes of arguments in the error for an unknown
// command, as in Redis.
const maxArgsQuoted = 128

// unknownCommand returns the error for an unknown command, as in Redis: the name and the
// first arguments, truncated.
func unknownCommand(args [][]byte) string {
	var b strings.Builder
	b.WriteString("ERR unknown command '")
	b.WriteString(quote(args[0]))
	b.WriteString("', with args beginning with: ")
	begin := b.Len()
	for _, a := range args[1:] {
		if b.Len()-begin >= maxArgsQuoted {
			break
		}
		b.WriteByte('\'')
		b.WriteString(quote(a[:min(len(a), maxArgsQuoted-(b.Len()-1-begin))]))
		b.WriteString("' ")
	}
	return b.String()
}

// near returns "; did you mean X?" for the word in capitals that another one is a misspelling of, or "".
func near(word string, words []string) string {
	if x := limit.Nearest(strings.ToUpper(word), words); x != "" && x != strings.ToUpper(word) {
		return "; did you mean " + x + "?"
	}
	return ""
}

// meant returns "did you mean X?" for a name that is nearly one of Limitgate's own commands, or
// is one without its prefix, and the way out for a command of data. For any other name it returns
// "", as the error is Redis' then. A blank may stand for the dot behind the prefix.
func (h *Handler) meant(args [][]byte) string {
	word := strings.ToLower(quote(args[0]))
	if word+"." == ownPrefix && len(args) > 1 {
		word = ownPrefix + strings.ToLower(quote(args[1]))
	}
	if dataCommands[word] {
		return noData(word)
	}
	if name, _, joined := strings.Cut(word, " "); joined && h.table[name] != nil {
		return "; " + strings.ToUpper(name) + " and its arguments came as one word: send each as a word, without quotes around them all"
	}
	if strings.HasPrefix(word, "cl") && limit.Nearest(word, []string{"cl.throttle"}) != "" {
		return "; did you mean CL.THROTTLE?"
	}
	if of := limit.Nearest(strings.ToUpper(word), strings.Split(h.table["rl.config"].usage, " | ")); of != "" {
		return "; did you mean RL.CONFIG " + of + "?"
	}
	if h.table[ownPrefix+word] == nil && !strings.HasPrefix(word, "rl") {
		return ""
	}
	var own []string // without the prefix
	for _, name := range slices.Sorted(maps.Keys(h.table)) {
		if bare, found := strings.CutPrefix(name, ownPrefix); found {
			own = append(own, bare)
		}
	}
	bare := strings.TrimLeft(strings.TrimPrefix(word, "rl"), ".:-_ ")
	if near := limit.Nearest(bare, own); near != "" && near[0] == bare[0] {
		return "; did you mean " + strings.ToUpper(ownPrefix+near) + "?"
	}
	if strings.HasPrefix(word+".", ownPrefix) {
		return "; RL.HELP lists the commands"
	}
	return ""
}

// equalFold reports whether an argument is a word, ignoring case.
func equalFold(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}
