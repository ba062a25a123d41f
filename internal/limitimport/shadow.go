package limitimport

// inShadow returns limits in shadow mode, without those that were in it and would be as specific as another one there. Of a limit
// that was in it and one that admits its requests it returns the former.
func inShadow(limits []imported) (out []imported) {
	watches := map[string]bool{} // by the place and the conditions
	for i := range limits {
		if l := &limits[i]; l.shadow && !hasTie(limits, l) {
			watches[l.key()] = true
		}
	}
	for _, l := range limits {
		if l.shadow != watches[l.key()] {
			continue
		}
		l.shadow, l.dry, l.replaces = true, l.shadow, nil
		out = append(out, l)
	}
	return out
}

// hasTie reports whether a limit is as specific as another one that counts, or one of other conditions, for some requests.
func hasTie(limits []imported, l *imported) bool {
	for i := range limits {
		o := &limits[i]
		if !o.shadow && len(o.when) == len(l.when) && o.tiesWith(l) && (o.action == "" || o.key() != l.key()) {
			return true
		}
	}
	return false
}
