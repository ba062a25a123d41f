package load

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const (
	admission = "*7\r\n:1\r\n:600\r\n:599\r\n:0\r\n:82914\r\n$8\r\npayments\r\n$5\r\nstore\r\n"
	denial    = "*7\r\n:0\r\n:-1\r\n:0\r\n:-1\r\n:0\r\n$0\r\n\r\n$8\r\nbackstop\r\n"
)

func TestRepliesAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		shape   Shape
		replies string
		want    Tally
	}{
		"admitted integer": {Integer, ":1\r\n:12345\r\n", Tally{Replies: 2, Admitted: 2}},
		"denied integer":   {Integer, ":0\r\n:-7\r\n", Tally{Replies: 2, Denied: 2}},
		"decisions": {Decision, admission + denial + admission, Tally{
			Replies: 3, Admitted: 2, Denied: 1, Sources: []SourceCount{{"store", 2}, {"backstop", 1}},
		}},
		"throttles": {Throttle, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:32\r\n", Tally{Replies: 2, Admitted: 1, Denied: 1}},
		"errors": {Decision, "-ERR no\r\n" + admission + "-OOM full\r\n", Tally{
			Replies: 3, Admitted: 1, Errors: 2, FirstError: "ERR no", Sources: []SourceCount{{"store", 1}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got Tally
			n, size, err := got.countUpTo(10, test.shape, []byte(test.replies))
			if err != nil || n != int(test.want.Replies) || size != len(test.replies) {
				t.Errorf("counted %d replies in %d of %d bytes, %v", n, size, len(test.replies), err)
			}
			if !equal(&got, &test.want) {
				t.Errorf("tally = %+v, want %+v", got, test.want)
			}
		})
	}
}

// equal compares all counts.
func equal(a, b *Tally) bool {
	return a.Replies == b.Replies && a.Admitted == b.Admitted && a.Denied == b.Denied && a.Errors == b.Errors &&
		a.FirstError == b.FirstError && slices.Equal(a.Sources, b.Sources)
}

func TestReplyThatIsNotCompleteIsNotCounted(t *testing.T) {
	for _, test := range []struct {
		shape Shape
		reply string
	}{{Integer, ":1\r\n"}, {Decision, admission}, {Decision, denial}, {Decision, "-ERR no\r\n"}, {Throttle, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"}} {
		for cut := range test.reply {
			var tally Tally
			size, err := tally.count(test.shape, []byte(test.reply[:cut]))
			if size != 0 || err != nil || tally.Replies != 0 {
				t.Errorf("count(%q) = %d, %v, %+v", test.reply[:cut], size, err, tally)
			}
		}
	}
}

func TestReplyOfAnotherShapeIsRefused(t *testing.T) {
	for _, test := range []struct {
		shape Shape
		reply string
	}{
		{Integer, "+OK\r\n"},
		{Integer, admission},
		{Decision, ":1\r\n"},
		{Throttle, ":1\r\n"},
		{Throttle, "*5\r\n:0\r\n:16\r\n+15\r\n"},
		{Decision, "*6\r\n:1\r\n"},
		{Decision, strings.Replace(admission, ":599", "+599", 1)},
		{Decision, strings.Replace(admission, "$8\r\npayments", ":8", 1)},
		{Decision, strings.Replace(admission, "$8", "$-1", 1)},
		{Decision, strings.Replace(admission, "$8", "$4", 1)},
		{Decision, strings.Replace(admission, "$8", "$", 1)},
		{Decision, strings.Replace(admission, "$8\r", "", 1)},
		{Decision, strings.Replace(admission, "$8", "$99999999999999999999", 1)},
	} {
		var tally Tally
		if size, err := tally.count(test.shape, []byte(test.reply)); !errors.Is(err, errShape) {
			t.Errorf("count(%q) = %d, %v, want %v", test.reply, size, err, errShape)
		}
	}
}

func TestNoMoreRepliesAreCountedThanAskedFor(t *testing.T) {
	var tally Tally
	n, size, err := tally.countUpTo(2, Integer, []byte(":1\r\n:1\r\n:1\r\n"))
	if n != 2 || size != 8 || err != nil {
		t.Errorf("countUpTo(2) = %d, %d, %v", n, size, err)
	}
}

func TestTalliesAdd(t *testing.T) {
	a := Tally{Replies: 1, Admitted: 1, Sources: []SourceCount{{"store", 1}}}
	a.Add(&Tally{Replies: 3, Denied: 2, Errors: 1, FirstError: "ERR", Sources: []SourceCount{{"backstop", 1}, {"store", 1}}})
	want := Tally{Replies: 4, Admitted: 1, Denied: 2, Errors: 1, FirstError: "ERR", Sources: []SourceCount{{"store", 2}, {"backstop", 1}}}
	if !equal(&a, &want) {
		t.Errorf("sum = %+v, want %+v", a, want)
	}
	if a.From("store") != 2 || a.From("elsewhere") != 0 {
		t.Errorf("From = %d, %d", a.From("store"), a.From("elsewhere"))
	}
}

func FuzzCount(f *testing.F) {
	for _, seed := range []string{":1\r\n", admission, denial, "-ERR\r\n", "*7\r\n:1\r\n:2", "$5\r\n"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, decides bool) {
		shape := Integer
		if decides {
			shape = Decision
		}
		var tally Tally
		n, size, err := tally.countUpTo(8, shape, b)
		if size < 0 || size > len(b) || err == nil && int64(n) != tally.Replies {
			t.Errorf("counted %d replies in %d of %d bytes, %v: %+v", n, size, len(b), err, tally)
		}
	})
}
