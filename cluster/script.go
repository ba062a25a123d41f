package cluster

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"
)

//go:embed scripts/begin.lua
var beginLua string

//go:embed scripts/one.lua
var oneLua string

//go:embed scripts/several.lua
var severalLua string

//go:embed scripts/bucket.lua
var bucketLua string

//go:embed scripts/one_by_one.lua
var oneByOneLua string

//go:embed scripts/call.lua
var callLua string

//go:embed scripts/later.lua
var laterLua string

//go:embed scripts/decide.lua
var decideLua string

// lazily wraps a text that returns a function: it runs when that is first called.
const lazily = `
local made
local function NAME(verb, limits, n_calls, several)
  made = made or (function()
TEXT
  end)()
  return made(verb, limits, n_calls, several)
end
`

// lazilyOnce wraps a text that returns something: it runs when that is first asked for.
const lazilyOnce = `
local made_NAME
local function NAME()
  made_NAME = made_NAME or (function()
TEXT
  end)()
  return made_NAME
end
`

// clockLine is the one line in which the script reads the clock. Tests run a
// text in which only this line differs.
const clockLine = "local time = redis.call('TIME') -- the only clock\n"

// formatLine is the one line that says in which format new buckets are written.
const formatLine = "local WRITE_FORMAT = 1 -- the format of new buckets\n"

// joined returns the text of the script, with begin.lua as given, as it is sent.
func joined(begin string) string {
	wrap := func(template, name, text string) string {
		return strings.NewReplacer("NAME", name, "TEXT", text).Replace(template)
	}
	calls := strings.NewReplacer(
		"-- INSERT one_by_one\n", wrap(lazilyOnce, "one_by_one", oneByOneLua),
		"-- INSERT later\n", wrap(lazilyOnce, "later", laterLua),
	).Replace(callLua)
	text := begin
	for _, part := range []struct{ name, text string }{
		{"decide_any", bucketLua + "\n" + calls},
		{"decide_one", oneLua},
		{"decide_several", severalLua},
	} {
		text += wrap(lazily, part.name, part.text)
	}
	return stripped(text + decideLua)
}

// stripped leaves out what only people need: every new connection sends the text.
func stripped(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimLeft(line, " \n"); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// script is a Lua text and the SHA-1 by which Redis knows it.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

// decideScript joins the texts. Format is the one in which new buckets are
// written.
func decideScript(format int) script {
	begin := strings.Replace(beginLua, formatLine, strings.Replace(formatLine, "1", strconv.Itoa(format), 1), 1)
	return newScript(joined(begin))
}
