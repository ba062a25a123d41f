package commands

// weight is the cost of a command, the lightest first.
type weight uint8

const (
	light weight = iota
	waits
	long
)

// lightCommands neither wait nor compute much, and their replies are short or rendered
// already. Other commands wait, unless they are long.
var lightCommands = []string{
	"acl|whoami", "asking", "auth",
	"client|caching", "client|getname", "client|getredir", "client|id", "client|info", "client|no-evict", "client|no-touch",
	"client|reply", "client|setinfo", "client|setname", "client|tracking", "client|trackinginfo", "client|unblock", "client|unpause",
	"cluster|countkeysinslot", "cluster|getkeysinslot", "cluster|info", "cluster|keyslot", "cluster|links", "cluster|myid",
	"cluster|nodes", "cluster|replicas", "cluster|shards", "cluster|slaves", "cluster|slots",
	"command", "command|count", "command|docs", "command|info",
	"dbsize", "discard", "echo", "exec", "hello", "latency|latest", "multi", "ping", "quit", "readonly", "readwrite", "reset",
	"rl.help", "role", "select", "slowlog|get", "slowlog|len", "slowlog|reset", "time", "unwatch", "watch",
}

// longCommands need much processor time, iterate over the store, or read files.
var longCommands = []string{
	"acl|list", "acl|load", "acl|users", "client|kill", "client|list", "rl.config", "rl.denied", "rl.explain", "rl.limits", "rl.reset", "rl.top",
}

// growingCommands take longer, and have longer replies, the more arguments they have.
var growingCommands = []string{
	"acl|cat", "command|docs", "command|getkeys", "command|getkeysandflags", "command|info", "command|list", "config|get", "config|set", "del", "unlink",
}

// With more words than manyWords, or more bytes than manyBytes, a growing command is
// long: clients usually send few.
const (
	manyWords = 16
	manyBytes = 1024
)

// weighAll sets the weights of the commands in a table.
func weighAll(table map[string]*command) {
	set := func(names []string, change func(c *command)) {
		for _, name := range names {
			change(byFullName(table, []byte(name)))
		}
	}
	for _, c := range table {
		c.weight = waits
		for _, sub := range c.subs {
			sub.weight = waits
		}
	}
	set(lightCommands, func(c *command) { c.weight = light })
	set(longCommands, func(c *command) { c.weight = long })
	set(growingCommands, func(c *command) { c.grows = true })
}

// Weigh returns the cost of a command in the present state of the session: whether it may
// wait for the store, and whether it takes long.
func (s *Session) Weigh(args [][]byte) (mayWait, takesLong bool) {
	w := s.weigh(args)
	return w >= waits, w == long
}

// weigh returns the weight of a command. Between MULTI and EXEC it is only queued.
func (s *Session) weigh(args [][]byte) weight {
	if len(args) == 0 {
		return light
	}
	if s.tx == nil {
		return s.weighRun(args)
	}
	if c := s.h.lookup(args[0]); c != nil && c.full == "exec" {
		return s.tx.weight
	}
	return light
}

// weighQueued returns the weight that a command adds to EXEC. That of AUTH is not known
// before: the users may be replaced until then.
func (s *Session) weighQueued(args [][]byte) weight {
	if s.h.opts.Users != nil && (isName(args[0], "auth") || isName(args[0], "hello")) {
		return waits
	}
	return s.weighRun(args)
}

// weighRun returns the weight of a command that is not queued, for the session's user.
func (s *Session) weighRun(args [][]byte) weight {
	switch {
	case isName(args[0], "auth"), isName(args[0], "hello"):
		return s.authWeight(args)
	case s.user == nil: // the command is refused
		return light
	}
	return s.h.weigh(args)
}

// weigh returns the weight of a command that is run. An unknown one is light.
func (h *Handler) weigh(args [][]byte) weight {
	if _, ok := dialectOf(args[0]); ok {
		return waits
	}
	c := h.lookup(args[0])
	if c != nil && c.subs != nil && len(args) > 1 {
		c = named(c.subs, args[1])
	}
	switch {
	case c == nil:
		return light
	case c.grows && isMany(args):
		return long
	default:
		return c.weight
	}
}

func isMany(args [][]byte) bool {
	bytes := 0
	for _, a := range args {
		bytes += len(a)
	}
	return len(args) > manyWords || bytes > manyBytes
}
