package load

import "testing"

func TestRequestIsRESPWithTheNumberInItsHoles(t *testing.T) {
	r := NewRequest("RL.CHECK", "t"+Hole, "-", "user-"+Hole+"!")
	const want = "*4\r\n$8\r\nRL.CHECK\r\n$8\r\nt0000042\r\n$1\r\n-\r\n$13\r\nuser-0000042!\r\n"
	if got := string(r.append(nil, 42)); got != want {
		t.Errorf("request = %q, want %q", got, want)
	}
	if got := string(r.append([]byte("x"), 9_999_999)); got[:1] != "x" || got[len(got)-10:] != "9999999!\r\n" {
		t.Errorf("appended request = %q", got)
	}
	if got := string(r.append(nil, 42)); got != want {
		t.Errorf("a request changed by being used: %q", got)
	}
}

func TestFillWritesWhatARequestSends(t *testing.T) {
	for _, test := range []struct{ word, want string }{
		{"t" + Hole, "t0001234"},
		{Hole, "0001234"},
		{"no hole", "no hole"},
	} {
		if got := Fill(test.word, 1234); got != test.want {
			t.Errorf("Fill(%q) = %q, want %q", test.word, got, test.want)
		}
	}
}
