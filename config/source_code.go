package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
)

// codeLine matches a line that begins a file in JavaScript, TypeScript, Go, Python, Ruby, PHP, Java or C, and no line of YAML.
var codeLine = regexp.MustCompile(`(?m)^(?:(?:const|let|var) [\w{$]+.*=|import (?:[\w{*].* from )?["'(]|import [\w.]+;?$|export (?:default|const) |module\.exports|package [\w.]+;?$|from [\w.]+ import |require(?:_relative)?[ (]["']|#include [<"]|<\?php|def \w+\(|class \w+)`)

// maxCodeBytes bounds what is searched for a line of code: it is near the beginning of a file.
const maxCodeBytes = 4096

// LooksLikeCode reports whether content that could not be read begins as the source code of a program does.
func LooksLikeCode(content []byte) bool {
	return codeLine.Match(content[:min(len(content), maxCodeBytes)])
}

// ErrCode is the error of a file for which LooksLikeCode is true.
var ErrCode = errors.New("it is the source code of a program: limits in code are moved by hand, see docs/moving")

// equalsBegins matches the beginning of a file of TOML, of INI or of KEY=VALUE: a section in brackets, or a key with an equals sign.
var equalsBegins = regexp.MustCompile(`^(?:[ \t]*(?:[#;][^\n]*)?\r?\n)*(?:\[\[?[\w. -]+\]\]?[ \t]*(?:[#;][^\n]*)?\r?\n(?:[ \t]*(?:[#;][^\n]*)?\r?\n)*)*[\w."-]+[ \t]*=`)

// hasEquals reports whether content, which is no mapping in YAML, begins as a file with equals signs does.
func hasEquals(content []byte) bool {
	return equalsBegins.Match(content[:min(len(content), maxCodeBytes)])
}

// ofEquals is the mistake of a file for which hasEquals is true.
const ofEquals = "it has the form of TOML or of KEY=VALUE, and is to be YAML: NAME: VALUE on a line"

// looksLikeUsers matches the beginning of a file of users.
var looksLikeUsers = regexp.MustCompile(`^(?:[ \t]*(?:#[^\n]*)?\r?\n)*user \S+ (?:on|off)\b`)

// errorLog matches a line of an error log of nginx.
var errorLog = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] `)

// timeKeys are names of the time in logs of JSON, as internal/accesslog reads them. A log need not be readable to be named as one.
var timeKeys = []string{"time", "timestamp", "@timestamp", "time_iso8601", "ts", "start_time", "StartUTC", "time_local", "msec"}

// LooksLikeLog reports whether content begins with a line of an access log, or of an error log of nginx.
func LooksLikeLog(content []byte) bool {
	line, _, _ := bytes.Cut(content[:min(len(content), maxCodeBytes)], []byte("\n"))
	if bytes.HasPrefix(line, []byte("{")) {
		var object map[string]any
		return json.Unmarshal(line, &object) == nil && object["version"] == nil && slices.ContainsFunc(timeKeys, func(key string) bool { return object[key] != nil })
	}
	if errorLog.Match(line) || bytes.HasPrefix(line, []byte("#Version: 1.0")) || bytes.HasPrefix(line, []byte("#Software: Microsoft Internet")) {
		return true
	}
	at := looksLikeLog.FindIndex(line)
	return at != nil && !bytes.Contains(line[:at[0]], []byte(": ")) && !bytes.ContainsAny(line[:at[0]], "{}")
}

// ErrLog is the error of a file for which LooksLikeLog is true.
var ErrLog = errors.New("it is a log: limitgate limits suggest writes limits for one, and limitgate replay shows what limits do to it")
