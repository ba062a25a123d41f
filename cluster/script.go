package cluster

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"
)

//go:embed scripts/bucket.lua
var bucketLua string

//go:embed scripts/call.lua
var callLua string

//go:embed scripts/levels.lua
var levelsLua string

//go:embed scripts/decide.lua
var decideLua string

// clockLine is the one line in which the script reads the clock. Tests run a
// text in which only this line differs.
const clockLine = "local time = redis.call('TIME') -- the only clock\n"

// formatLine is the one line that says in which format new buckets are written.
const formatLine = "local WRITE_FORMAT = 1 -- the format of new buckets\n"

// joined returns the text of the script, with bucket.lua as given.
func joined(bucket string) string {
	return strings.Join([]string{bucket, callLua, levelsLua, decideLua}, "\n")
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
	bucket := strings.Replace(bucketLua, formatLine, strings.Replace(formatLine, "1", strconv.Itoa(format), 1), 1)
	return newScript(joined(bucket))
}
