package judge

import (
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// shrinker makes a history smaller as long as its answer is still wrong.
type shrinker struct {
	h     history
	specs []*file
	// wrong reports whether the answer to a history is wrong.
	wrong func(h *history) bool
	end   time.Time // deadline
}

// shrink returns the smallest history that it found within this time.
func shrink(d *drawn, within time.Duration, wrong func(h *history) bool) *history {
	s := &shrinker{h: d.history, specs: d.specs, wrong: wrong, end: time.Now().Add(within)}
	for before := -1; before != s.size() && time.Now().Before(s.end); {
		before = s.size()
		s.dropSteps()
		s.mergeAdvances()
		s.dropFiles()
		s.shrinkFiles()
		s.shrinkSteps()
	}
	return &s.h
}

func (s *shrinker) size() int { return len(s.h.String()) }

// try takes a changed history if it is still wrong.
func (s *shrinker) try(steps []operation, specs []*file) bool {
	if time.Now().After(s.end) {
		return false
	}
	h := history{start: s.h.start, steps: steps}
	for _, f := range specs {
		text := f.String()
		if _, err := compile(text); err != nil {
			return false
		}
		h.files = append(h.files, text)
	}
	if len(steps) == 0 || !s.wrong(&h) {
		return false
	}
	s.h, s.specs = h, specs
	return true
}

// dropSteps drops runs of steps, long ones first.
func (s *shrinker) dropSteps() {
	for n := len(s.h.steps) / 2; n >= 1; n /= 2 {
		for at := len(s.h.steps) - n; at >= 0; at -= n {
			if at+n > len(s.h.steps) {
				continue
			}
			s.try(slices.Delete(slices.Clone(s.h.steps), at, at+n), s.specs)
		}
	}
}

// mergeAdvances merges consecutive advances into one.
func (s *shrinker) mergeAdvances() {
	for i := len(s.h.steps) - 2; i >= 0; i-- {
		if i+1 < len(s.h.steps) && s.h.steps[i].kind == advance && s.h.steps[i+1].kind == advance {
			steps := slices.Delete(slices.Clone(s.h.steps), i, i+1)
			steps[i].by += s.h.steps[i].by
			s.try(steps, s.specs)
		}
	}
}

// dropFiles drops files that are never used.
func (s *shrinker) dropFiles() {
	for i := len(s.specs) - 1; i >= 1; i-- {
		if slices.ContainsFunc(s.h.steps, func(o operation) bool { return o.kind == reload && o.file == i }) {
			continue
		}
		steps := slices.Clone(s.h.steps)
		for j := range steps {
			if steps[j].kind == reload && steps[j].file > i {
				steps[j].file--
			}
		}
		s.try(steps, slices.Delete(slices.Clone(s.specs), i, i+1))
	}
}

// changeFile tries a change of one file, in all files first.
func (s *shrinker) changeFile(change func(f *file) bool) {
	all := make([]*file, len(s.specs))
	changed := false
	for i, f := range s.specs {
		all[i] = f.clone()
		changed = change(all[i]) || changed
	}
	if !changed || s.try(s.h.steps, all) {
		return
	}
	for i := range s.specs {
		one := slices.Clone(s.specs)
		one[i] = one[i].clone()
		if change(one[i]) {
			s.try(s.h.steps, one)
		}
	}
}

// shrinkFiles drops limits, tenants, plans and fields.
func (s *shrinker) shrinkFiles() {
	for range 2 {
		for list := range 16 {
			for i := range 8 {
				s.changeFile(func(f *file) bool { return dropRule(f, list, i, -1) })
				for k := 10; k >= 0; k-- {
					s.changeFile(func(f *file) bool { return dropRule(f, list, i, k) })
				}
			}
		}
		for i := 4; i >= 0; i-- {
			s.changeFile(func(f *file) bool { return dropAt(&f.tenants, i) })
			s.changeFile(func(f *file) bool { return dropAt(&f.dimensions, i) })
			s.changeFile(func(f *file) bool { return dropAt(&f.plans, i) })
			s.changeFile(func(f *file) bool { return dropAt(&f.head, i) })
		}
		s.changeFile(func(f *file) bool { f.dimensions = nil; return true })
	}
}

func dropAt[T any](list *[]T, i int) bool {
	if i >= len(*list) {
		return false
	}
	*list = slices.Delete(*list, i, i+1)
	return true
}

// dropRule drops a rule of one of a file's lists of rules, or the field k of it.
func dropRule(f *file, list, i, k int) bool {
	lists := f.ruleLists()
	if list >= len(lists) || i >= len(*lists[list]) {
		return false
	}
	if k < 0 {
		return dropAt(lists[list], i)
	}
	return dropAt(&(*lists[list])[i].fields, k)
}

// shrinkSteps makes single steps simpler.
func (s *shrinker) shrinkSteps() {
	simpler := []func(o *operation){
		func(o *operation) { o.joined = false },
		func(o *operation) { o.kind = check; o.id, o.ttl = "", 0 },
		func(o *operation) { o.id = "" },
		func(o *operation) { o.dims = nil },
		func(o *operation) { o.ip = "" },
		func(o *operation) { o.op = "" },
		func(o *operation) { o.cost = 1 },
		func(o *operation) { o.cost = 2 },
		func(o *operation) { o.cost /= 2 },
		func(o *operation) { o.cost-- },
		func(o *operation) { o.ttl = limit.DefaultHold.Milliseconds() },
		func(o *operation) { o.units = 0 },
		func(o *operation) { o.by = (o.by + 999_999) / 1_000_000 * 1_000_000 },
		func(o *operation) { o.by = o.by / 1_000_000 * 1_000_000 },
		func(o *operation) { o.by = o.by / 1000 * 1000 },
		func(o *operation) { o.by = 1_000_000 },
	}
	for i := range s.h.steps {
		for _, change := range simpler {
			if i >= len(s.h.steps) {
				break
			}
			steps := slices.Clone(s.h.steps)
			change(&steps[i])
			o := &steps[i]
			if steps[i].kind != s.h.steps[i].kind && !s.h.steps[i].kind.pipelined() || o.String() == s.h.steps[i].String() {
				continue
			}
			if o.kind.decides() && o.cost < 1 || (o.kind == reserve || o.kind == acquire) && (o.id == "" || o.ttl == 0) || o.by < 0 {
				continue
			}
			s.try(steps, s.specs)
		}
		for j := range s.h.steps[min(i, len(s.h.steps)-1)].dims {
			steps := slices.Clone(s.h.steps)
			if j < len(steps[i].dims) {
				steps[i].dims = slices.Delete(slices.Clone(steps[i].dims), j, j+1)
				s.try(steps, s.specs)
			}
		}
	}
}
