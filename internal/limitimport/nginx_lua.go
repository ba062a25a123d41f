package limitimport

import "strings"

// luaBlock ends the names of directives of OpenResty whose block is a program in Lua.
const luaBlock = "_by_lua_block"

// ofLua is the remark on a configuration with Lua, whose programs run before limit_req, in the phase of rewrite, or behind it.
const ofLua = "Lua is not read: limits in it are not imported, and nginx does not count the requests that rewrite_by_lua answers"

// isLua reports whether a directive runs a program in Lua.
func isLua(name string) bool { return strings.Contains(name, "_by_lua") }

// afterLua returns the index behind the } that ends a program in Lua, which begins behind its {, or -1. A } in a string or in a
// comment ends no block.
func afterLua(text string) int {
	for i, depth := 0, 1; i < len(text); {
		skip := 1
		switch c := text[i]; {
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case c == '"' || c == '\'':
			skip = afterLuaString(text[i:])
		case strings.HasPrefix(text[i:], "--"):
			end := "\n"
			if long := longBracket(text[i+2:]); long != "" {
				end = long
			}
			skip = after(text[i:], end)
		case c == '[':
			if end := longBracket(text[i:]); end != "" {
				skip = after(text[i:], end)
			}
		}
		i += skip
	}
	return -1
}

// after returns the index behind the first end in text, or that of its end.
func after(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

// longBracket returns the bracket that ends the one with which text begins, such as ]=] of [=[, or "" if it begins with none.
func longBracket(text string) string {
	inside := strings.TrimPrefix(text, "[")
	rest := strings.TrimLeft(inside, "=")
	if len(inside) == len(text) || !strings.HasPrefix(rest, "[") {
		return ""
	}
	return "]" + inside[:len(inside)-len(rest)] + "]"
}

// afterLuaString returns the index behind the string with which text begins. It ends with its line, unless a \ or \z takes it on.
func afterLuaString(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i < len(text) && (text[i] == 'z' || text[i] == '\r') {
				i += len(text[i+1:]) - len(strings.TrimLeft(text[i+1:], " \t\r\n"))
			}
		case text[0], '\n':
			return i + 1
		}
	}
	return len(text)
}
