package config

import (
	"bytes"
	"errors"
	"regexp"
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

// LooksLikeLog reports whether content begins with a line of an access log.
func LooksLikeLog(content []byte) bool {
	line, _, _ := bytes.Cut(content[:min(len(content), maxCodeBytes)], []byte("\n"))
	return looksLikeLog.Match(line)
}

// ErrLog is the error of a file for which LooksLikeLog is true.
var ErrLog = errors.New("it is a log: limitgate limits suggest writes limits for one, and limitgate replay shows what limits do to it")
