package config

import "go.yaml.in/yaml/v4"

// maxAliased bounds the values that aliases repeat, all together: each is read, and made part
// of the limits, as often as it is meant. 100,000 tenants that share their overrides fit.
const maxAliased = 1 << 20

// aliases counts what aliases stand for.
type aliases struct {
	decoder *limitsDecoder
	sizes   map[*yaml.Node]int // of anchored values; unfinished for those that are being counted
	total   int                // values that were repeated so far
}

// unfinished is the size of a value that is being counted.
const unfinished = -1

// checkAliases reports whether what the aliases below a node repeat is within bounds, and
// reports a problem if it is not.
func (d *limitsDecoder) checkAliases(root *yaml.Node) bool {
	a := &aliases{decoder: d, sizes: map[*yaml.Node]int{}}
	_, ok := a.count(root)
	return ok
}

// count returns how many values a node is with all that aliases in it stand for. A value that
// an alias stands for comes before it and is counted once, so that the count takes no longer
// than the file is long.
func (a *aliases) count(n *yaml.Node) (size int, ok bool) {
	if n.Kind == yaml.AliasNode {
		return a.repeat(n)
	}
	if n.Anchor != "" {
		a.sizes[n] = unfinished
	}
	size = 1
	for _, child := range n.Content {
		more, ok := a.count(child)
		if !ok {
			return 0, false
		}
		size += more
	}
	if n.Anchor != "" {
		a.sizes[n] = size
	}
	return size, true
}

// repeat counts what an alias stands for.
func (a *aliases) repeat(n *yaml.Node) (size int, ok bool) {
	size = a.sizes[n.Alias]
	a.total += size
	switch {
	case size == unfinished:
		a.decoder.fail(n, "", "*%s stands for what it is part of: write out what it should be", plain(n.Value))
	case a.total > maxAliased:
		a.decoder.fail(n, "", "aliases repeat more than %d values, *%s here %d of them: write fewer out, for example by giving tenants one plan instead of equal ones", maxAliased, plain(n.Value), size)
	default:
		return size, true
	}
	return 0, false
}
