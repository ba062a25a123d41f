package limitimport

import "strings"

// luaBlock ends the names of directives of OpenResty whose block is a program in Lua.
const luaBlock = "_by_lua_block"

// ofLua is the remark on a configuration with Lua, whose programs run before limit_req, in the phase of rewrite, or behind it.
const ofLua = "Lua is not read: limits in it are not imported, and nginx does not count the requests that rewrite_by_lua answers"

// isLua reports whether a directive runs a program in Lua.
func isLua(name string) bool { return strings.Contains(name, "_by_lua") }

// afterLua returns the index behind the } that ends a program in Lua, which begins behind its {, or -1. A } in a string or in a
// comment ends no block. Long brackets are those without = between their brackets.
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
		case strings.HasPrefix(text[i:], "--[["):
			skip = after(text[i:], "]]")
		case strings.HasPrefix(text[i:], "--"):
			skip = after(text[i:], "\n")
		case strings.HasPrefix(text[i:], "[["):
			skip = after(text[i:], "]]")
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

// afterLuaString returns the index behind the string with which text begins.
func afterLuaString(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}
