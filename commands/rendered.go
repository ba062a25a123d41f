package commands

import (
	"strconv"
	"strings"
	"sync"
)

// rendered holds the long constant replies, in one version of the protocol: clients that
// do not read pipeline their commands by the thousand.
type rendered struct {
	info, docs map[*command][]byte // of each command and subcommand
	allInfo    []byte
	allDocs    []byte
	help       []byte
}

// newRendered returns a function that renders the replies at its first call.
func (h *Handler) newRendered(resp3 bool) func() *rendered {
	return sync.OnceValue(func() *rendered { return h.render(resp3) })
}

// rendered returns the replies in the client's version of the protocol.
func (s *Session) rendered() *rendered {
	if s.out.resp3 {
		return s.h.resp3()
	}
	return s.h.resp2()
}

// raw appends encoded RESP.
func (r *reply) raw(b []byte) { r.buf = append(r.buf, b...) }

// parts appends an aggregate of parts after its header, unless that is too long.
func (r *reply) parts(parts [][]byte, header func(n int)) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size > maxReply {
		r.error("ERR the reply exceeds " + strconv.Itoa(maxReply) + " bytes: ask for fewer commands at once")
		return
	}
	header(len(parts))
	for _, p := range parts {
		r.raw(p)
	}
}

// infos appends the reply of COMMAND for these commands.
func (r *reply) infos(all []*command) {
	r.array(len(all))
	for _, c := range all {
		r.commandInfo(c)
	}
}

// help appends one line for each command of Limitgate.
func (r *reply) help(all []*command) {
	var lines []string
	for _, c := range all {
		if c.group == groupLimit {
			lines = append(lines, strings.TrimSpace(strings.ToUpper(c.name)+" "+c.usage)+" -- "+c.summary)
		}
	}
	r.bulks(lines)
}

// render renders the replies.
func (h *Handler) render(resp3 bool) *rendered {
	made := &rendered{info: map[*command][]byte{}, docs: map[*command][]byte{}}
	part := func(write func(*reply)) []byte {
		r := reply{resp3: resp3}
		write(&r)
		return r.buf
	}
	for _, container := range h.sorted() {
		for _, c := range append([]*command{container}, container.sortedSubs()...) {
			made.info[c] = part(func(r *reply) { r.commandInfo(c) })
			made.docs[c] = part(func(r *reply) { r.namedDoc(c) })
		}
	}
	made.allInfo = part(func(r *reply) { r.infos(h.sorted()) })
	made.allDocs = part(func(r *reply) { r.docs(h.sorted()) })
	made.help = part(func(r *reply) { r.help(h.sorted()) })
	return made
}
