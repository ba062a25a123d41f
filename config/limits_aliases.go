package config

import "go.yaml.in/yaml/v4"

// maxAliased is the maximum number of values that aliases repeat, all together: each is
// read, and added to the limits, once for every alias. 100,000 tenants that share their
// overrides fit.
const maxAliased = 1 << 20

// aliases counts the values that aliases stand for.
type aliases struct {
	decoder *limitsDecoder
	sizes   map[*yaml.Node]int // of anchored values; unfinished for those that are being counted
	total   int                // number of values repeated so far
}

// unfinished is the size of a value that is being counted.
const unfinished = -1

// checkAliases reports whether the values that the aliases below a node repeat are within
// bounds, and records a problem if they are not.
func (d *limitsDecoder) checkAliases(root *yaml.Node) bool {
	a := &aliases{decoder: d, sizes: map[*yaml.Node]int{}}
	_, ok := a.count(root)
	return ok
}

// count returns how many values a node has, with all that the aliases in it stand for.
// The value of an alias is counted once, so that counting takes time linear in the length of the
// file.
func (a *aliases) count(n *yaml.Node) (size int, ok bool) {
	if n.Kind == yaml.AliasNode {
		return a.repeat(n)
	}
	if size, counted := a.sizes[n]; counted {
		return size, true
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

// repeat counts the values that an alias stands for.
func (a *aliases) repeat(n *yaml.Node) (size int, ok bool) {
	size, counted := a.sizes[n.Alias]
	if !counted { // a limit of a list, which is no part of the file any more
		if size, ok = a.count(n.Alias); !ok {
			return 0, false
		}
	}
	a.total += max(0, size)
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
