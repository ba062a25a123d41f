package commands

import (
	"context"
	"slices"
	"strings"
)

// command is a row of the command table: it drives dispatch, arity, COMMAND
// and RL.HELP.
type command struct {
	name    string // lower case
	arity   int    // as Redis counts: with the name; negative for at least
	group   string
	flags   []string
	usage   string // the arguments
	summary string
	run     func(ctx context.Context, s *Session, args [][]byte)
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
)

const peekUsage = "tenant op ip [cost] [DIM name value [DIM name value ...]]"

func newTable() map[string]*command {
	fast, admin := []string{"fast"}, []string{"admin"}
	rows := []command{
		{"rl.check", -4, groupLimit, []string{"write", "fast"}, peekUsage + " [ID id] [HEADERS]", "Decide whether the cost may be taken now, and take it.", nil},
		{"rl.peek", -4, groupLimit, []string{"readonly", "fast"}, peekUsage, "The decision RL.CHECK would give; takes nothing.", peekCommand},
		{"rl.explain", -4, groupLimit, []string{"readonly"}, peekUsage, "Every limit considered, its bucket, and why it applies or not.", explainCommand},
		{"rl.limits", -1, groupLimit, []string{"readonly"}, "[tenant]", "The limits in force, with their version and source.", limitsCommand},
		{"rl.reset", -2, groupLimit, admin, "tenant [limit_id]", "Forget the counters of a tenant, or (- limit_id) of a shared limit.", resetCommand},
		{"rl.config", -2, groupLimit, admin, "VERSION | RELOAD | SHARDS", "Version, age and staleness of the limits; load them again; the breakers of the store.", configCommand},
		{"cl.throttle", -1, groupLimit, []string{"write", "fast"}, "key max_burst count period [quantity]", "A decision by a limit that comes with the call, as redis-cell answers.", nil},
		{"gcra", -5, groupLimit, []string{"write", "fast"}, "key max_burst tokens_per_period period [TOKENS count]", "The same, as the GCRA command of Redis answered.", nil},
		{"throttle", -5, groupLimit, []string{"write", "fast"}, "key max_burst count_per_period period [quantity]", "The same, as throttlecrab answers.", nil},
		{"rl.help", -1, groupLimit, fast, "", "These lines.", helpCommand},

		{"ping", -1, groupConnection, fast, "[message]", "Answer PONG, or the message.", pingCommand},
		{"echo", 2, groupConnection, fast, "message", "Answer the message.", echoCommand},
		{"hello", -1, groupConnection, fast, "[2|3 [AUTH user password] [SETNAME name]]", "Choose the protocol version.", helloCommand},
		{"auth", -2, groupConnection, fast, "[user] password", "Authenticate.", authCommand},
		{"select", 2, groupConnection, fast, "index", "Choose a database; there is only 0.", selectCommand},
		{"quit", -1, groupConnection, fast, "", "Close the connection.", quitCommand},
		{"reset", 1, groupConnection, fast, "", "Forget the state of the connection.", resetConnectionCommand},
		{"client", -2, groupConnection, fast, "ID | INFO | LIST | GETNAME | SETNAME name | SETINFO attribute value | KILL ...", "Ask about and name connections.", clientCommand},

		{"multi", 1, groupConnection, fast, "", "Keep the commands that follow until EXEC.", multiCommand},
		{"exec", 1, groupConnection, nil, "", "Answer the commands kept since MULTI.", execCommand},
		{"discard", 1, groupConnection, fast, "", "Forget the commands kept since MULTI.", discardCommand},
		{"watch", -2, groupConnection, fast, "key ...", "Answer OK: there are no keys to watch.", watchCommand},
		{"unwatch", 1, groupConnection, fast, "", "Answer OK.", watchCommand},

		{"command", -1, groupServer, nil, "[COUNT | LIST | INFO name ... | DOCS name ...]", "Describe the commands.", commandCommand},
		{"info", -1, groupServer, nil, "[section ...]", "Describe the server.", infoCommand},
		{"config", -2, groupServer, admin, "GET pattern ...", "Read the few settings that Redis clients ask for.", redisConfigCommand},
		{"time", 1, groupServer, fast, "", "The clock of this proxy.", timeCommand},
		{"role", 1, groupServer, fast, "", "Answer master: any connection may be used.", roleCommand},
		{"acl", -2, groupServer, fast, "WHOAMI", "The user of this connection.", aclCommand},
		{"dbsize", 1, groupServer, fast, "", "Answer 0: buckets are not keys of this server.", zeroCommand},
	}
	table := make(map[string]*command, len(rows))
	for i := range rows {
		table[rows[i].name] = &rows[i]
	}
	return table
}

// maxCommandName is longer than the name of any command.
const maxCommandName = 16

// lookup finds a command by its name in any case of letters.
func (h *Handler) lookup(name []byte) *command {
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
	return h.table[string(lower[:len(name)])]
}

// sorted returns the table in the order of names.
func (h *Handler) sorted() []*command {
	out := make([]*command, 0, len(h.table))
	for _, c := range h.table {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	return out
}

// unknownCommand words the error as Redis does: the name and the first
// arguments, cut to 128 bytes.
func unknownCommand(args [][]byte) string {
	var b strings.Builder
	b.WriteString("ERR unknown command '")
	b.WriteString(quote(args[0]))
	b.WriteString("', with args beginning with: ")
	begin := b.Len()
	for _, a := range args[1:] {
		if b.Len()-begin >= 128 {
			break
		}
		b.WriteByte('\'')
		b.WriteString(quote(a))
		b.WriteString("' ")
	}
	return b.String()
}

// equalFold reports whether an argument is a word, in any case of letters.
func equalFold(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}
