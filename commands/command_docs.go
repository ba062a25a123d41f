package commands

import "context"

// commandCommand serves COMMAND: a description of the whole table.
func commandCommand(_ context.Context, s *Session, _ [][]byte) { s.out.raw(s.rendered().allInfo) }

func commandCount(_ context.Context, s *Session, _ [][]byte) {
	s.out.integer(int64(len(s.h.table)))
}

func commandList(_ context.Context, s *Session, args [][]byte) {
	wanted := func(*command) bool { return true }
	switch rest := args[2:]; {
	case len(rest) == 0:
	case len(rest) != 3 || !equalFold(rest[0], "FILTERBY"):
		s.out.error(syntaxError)
		return
	case equalFold(rest[1], "MODULE"):
		wanted = func(*command) bool { return false } // there are no modules: the commands are built in
	case equalFold(rest[1], "ACLCAT"):
		wanted = func(c *command) bool { return c.in(rest[2]) }
	case equalFold(rest[1], "PATTERN"):
		wanted = func(c *command) bool { return glob(rest[2], c.full) }
	default:
		s.out.error(syntaxError)
		return
	}
	s.out.bulks(s.h.names(wanted))
}

func commandInfo(ctx context.Context, s *Session, args [][]byte) {
	if len(args) == 2 {
		commandCommand(ctx, s, args)
		return
	}
	null := reply{resp3: s.out.resp3}
	null.null()
	parts := make([][]byte, 0, len(args)-2)
	for _, name := range args[2:] {
		if c := s.h.byFullName(name); c != nil {
			parts = append(parts, s.rendered().info[c])
		} else {
			parts = append(parts, null.buf)
		}
	}
	s.out.parts(parts, s.out.array)
}

func commandDocs(_ context.Context, s *Session, args [][]byte) {
	made := s.rendered()
	if len(args) == 2 {
		s.out.raw(made.allDocs)
		return
	}
	var parts [][]byte
	for _, name := range args[2:] {
		if c := s.h.byFullName(name); c != nil {
			parts = append(parts, made.docs[c])
		}
	}
	s.out.parts(parts, s.out.mapping)
}

func commandGetKeys(_ context.Context, s *Session, args [][]byte) {
	_, keys, errReply := s.h.keysOf(args[2:])
	if errReply != "" {
		s.out.error(errReply)
		return
	}
	s.out.array(len(keys))
	for _, k := range keys {
		s.out.bulk(string(k))
	}
}

func commandGetKeysAndFlags(_ context.Context, s *Session, args [][]byte) {
	c, keys, errReply := s.h.keysOf(args[2:])
	if errReply != "" {
		s.out.error(errReply)
		return
	}
	s.out.array(len(keys))
	for _, k := range keys {
		s.out.array(2)
		s.out.bulk(string(k))
		s.out.simples(c.keyFlags())
	}
}

// keysOf returns the keys of a command, or Redis' error if there are none.
func (h *Handler) keysOf(args [][]byte) (c *command, keys [][]byte, errReply string) {
	c = h.lookup(args[0])
	if c != nil && c.subs != nil && len(args) > 1 {
		c = named(c.subs, args[1])
	}
	switch {
	case c == nil:
		return nil, nil, "ERR Invalid command specified"
	case c.keys.first == 0:
		return nil, nil, "ERR The command has no key arguments"
	case !c.takes(len(args)):
		return nil, nil, "ERR Invalid number of arguments specified for command"
	}
	if keys = c.keys.of(args); len(keys) == 0 {
		return nil, nil, "ERR Invalid arguments specified for command"
	}
	return c, keys, ""
}

// keyFlags returns the flags of the accesses to the command's keys.
func (c *command) keyFlags() []string {
	for _, f := range c.flags {
		if f == "write" || f == "admin" {
			return []string{"RW", "access", "update"}
		}
	}
	return []string{"RO"}
}

// commandInfo appends the entry of a command in COMMAND INFO.
func (r *reply) commandInfo(c *command) {
	r.array(10)
	r.bulk(c.full)
	r.integer(int64(c.arity))
	r.simples(c.flags)
	r.integer(c.keys.first)
	r.integer(c.keys.last)
	r.integer(c.keys.step)
	r.set(len(c.categories()))
	for _, category := range c.categories() {
		r.simple("@" + category)
	}
	r.set(0)
	if c.keys.first == 0 {
		r.set(0)
	} else {
		r.set(1)
		r.keySpec(c)
	}
	subs := c.sortedSubs()
	if len(subs) == 0 {
		r.set(0) // a set as in Redis, although an array if there are some
		return
	}
	r.array(len(subs))
	for _, sub := range subs {
		r.commandInfo(sub)
	}
}

// keySpec appends the positions of the keys again, in the format of Redis 7.
func (r *reply) keySpec(c *command) {
	last := c.keys.last
	if last > 0 {
		last -= c.keys.first
	}
	r.mapping(3)
	r.bulk("flags")
	r.simples(c.keyFlags())
	r.bulk("begin_search")
	r.mapping(2)
	r.pair("type", "index")
	r.bulk("spec")
	r.mapping(1)
	r.pair("index", c.keys.first)
	r.bulk("find_keys")
	r.mapping(2)
	r.pair("type", "range")
	r.bulk("spec")
	r.mapping(3)
	r.pair("lastkey", last)
	r.pair("keystep", c.keys.step)
	r.pair("limit", 0)
}

// docs appends the entries of commands in COMMAND DOCS.
func (r *reply) docs(docs []*command) {
	r.mapping(len(docs))
	for _, c := range docs {
		r.namedDoc(c)
	}
}

func (r *reply) namedDoc(c *command) {
	r.bulk(c.full)
	r.doc(c)
}

func (r *reply) doc(c *command) {
	fields := 3
	if len(c.arguments) > 0 {
		fields++
	}
	if c.subs != nil {
		fields++
	}
	r.mapping(fields)
	r.pair("summary", c.summary)
	r.pair("since", "0.1.0")
	r.pair("group", c.group)
	if len(c.arguments) > 0 {
		r.bulk("arguments")
		r.argumentList(c.arguments)
	}
	if c.subs != nil {
		r.bulk("subcommands")
		r.docs(c.sortedSubs())
	}
}

func (r *reply) argumentList(args []argument) {
	r.array(len(args))
	for _, a := range args {
		r.argument(a)
	}
}

func (r *reply) argument(a argument) {
	var flags []string
	if a.optional {
		flags = append(flags, "optional")
	}
	if a.multiple {
		flags = append(flags, "multiple")
	}
	if a.multipleToken {
		flags = append(flags, "multiple_token")
	}
	fields := 2
	for _, there := range []bool{a.kind == "key", a.token != "", len(flags) > 0, len(a.within) > 0} {
		if there {
			fields++
		}
	}
	r.mapping(fields)
	r.pair("name", a.name)
	r.pair("type", a.kind)
	if a.kind == "key" {
		r.pair("key_spec_index", 0)
	}
	if a.token != "" {
		r.pair("token", a.token)
	}
	if len(flags) > 0 {
		r.bulk("flags")
		r.simples(flags)
	}
	if len(a.within) > 0 {
		r.bulk("arguments")
		r.argumentList(a.within)
	}
}

// simples appends a set of words.
func (r *reply) simples(words []string) {
	r.set(len(words))
	for _, w := range words {
		r.simple(w)
	}
}

// bulks appends an array of strings.
func (r *reply) bulks(words []string) {
	r.array(len(words))
	for _, w := range words {
		r.bulk(w)
	}
}
