package limit

import "regexp"

// compileHash reads whether names of buckets have a hash of the values of a dimension.
func (c *compiler) compileHash(spec *DimensionSpec) {
	if !spec.Hash.Set() {
		return
	}
	name, field := spec.Name.Value, "dimensions."+spec.Name.Value+".hash"
	switch is := spec.Hash.Value == "true"; {
	case !is && spec.Hash.Value != "false":
		c.fail(spec.Hash.Line, field, "say true or false, not %s", Quote(spec.Hash.Value))
	case is && name == "op":
		c.fail(spec.Hash.Line, field, "an op is the template of a route and no secret: leave hash out")
	case is && len(spec.Values) > 0:
		c.fail(spec.Hash.Line, field, "the file has the values, so that a hash hides none: leave hash out, or values")
	default:
		if c.hashed == nil {
			c.hashed = map[string]bool{}
		}
		c.hashed[name] = is
	}
}

// secretDim matches the names of dimensions whose values most likely are secrets.
var secretDim = regexp.MustCompile(`(?:^|[._-])(?:authorization|(?:api|access|secret)[._-]?key|token|cookie|password|secret|session|session[._-]?id|bearer|jwt)$`)

// LooksSecret reports whether the values of a dimension are most likely secrets, by its name.
func LooksSecret(dim string) bool { return secretDim.MatchString(dim) }

// findInClear finds a limit for each dimension whose values names of buckets have as they are sent, unless the file says
// whether they are hashed.
func (c *compiler) findInClear() {
	c.set.inClear = map[string]*Limit{}
	for _, l := range c.limits {
		if l.Action != ActionLimit || l.Mode == ModeOff {
			continue
		}
		l.countsSome(func(p *property) bool {
			if _, said := c.hashed[p.name]; p.kind == propertyExtra && !said && c.set.inClear[p.name] == nil {
				c.set.inClear[p.name] = l
			}
			return false
		})
	}
}

// noteSecrets notes once for each dimension that names of buckets have values that look like secrets.
func (c *compiler) noteSecrets() {
	for _, name := range keys(c.set.inClear) {
		if !LooksSecret(name) {
			continue
		}
		others := ""
		if c.dimensions == nil {
			others = ", and declare the other dimensions of the file"
		}
		c.note(c.set.inClear[name].Line, "by", "names of buckets have the values of %s as they are sent: if they are secrets, write dimensions: {%s: {hash: true}}%s", Quote(name), name, others)
	}
}
