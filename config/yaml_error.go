package config

import (
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// explainYAML returns the line, from 1, and the shortened text of an error of the YAML
// parser.
func explainYAML(err error) (line int, message string) {
	line, message = 1, err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		line, message = max(e.Mark.Line, 1), e.Message
		if e.ContextMsg != "" {
			message += ", " + e.ContextMsg
		}
		if e.ContextMark.Line > 0 && e.ContextMark.Line != line {
			message += " that begins on line " + strconv.Itoa(e.ContextMark.Line)
		}
	}
	if strings.Contains(message, "cannot start any token") {
		message += ": YAML is indented by spaces, not tabs, and text that begins with @ or ` is quoted"
	}
	switch {
	case strings.Contains(message, "mapping values are not allowed in this context"):
		message = "a colon with a space behind it begins a second mapping inside of a value: quote text that has one, or let the keys of one mapping begin in the same column"
	case strings.Contains(message, "did not find expected '-' indicator"):
		message += ": the lines of one list begin with - in the same column"
	case strings.Contains(message, "did not find expected ',' or"):
		message += ": text that has a comma, a bracket or a colon with a space behind it is quoted there"
	case strings.Contains(message, "did not find expected node content"):
		message += ": a value is missing, or the file ends too early"
	}
	return line, plain(message)
}
