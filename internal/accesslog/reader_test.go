package accesslog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// readAll reads a log to its end.
func readAll(t *testing.T, r io.Reader) (entries []Entry, bad []*ParseError) {
	t.Helper()
	reader, err := NewReader(r)
	if err != nil {
		t.Fatalf("NewReader: %v", err)
	}
	for {
		e, err := reader.Next()
		var parseErr *ParseError
		switch {
		case errors.Is(err, io.EOF):
			return entries, bad
		case errors.As(err, &parseErr):
			bad = append(bad, parseErr)
		case err != nil:
			t.Fatalf("Next: %v", err)
		default:
			entries = append(entries, e)
		}
	}
}

func readSample(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReaderOfTheSample(t *testing.T) {
	entries, bad := readAll(t, bytes.NewReader(readSample(t, "sample.log")))

	var badLines []int
	for _, e := range bad {
		badLines = append(badLines, e.Line)
	}
	if want := []int{9, 10, 16, 18, 19, 25, 26, 27, 30}; !slices.Equal(badLines, want) {
		t.Errorf("lines %v do not parse, want %v", badLines, want)
	}
	// Line 20 is blank: neither an entry nor an error.
	if len(entries) != 20 {
		t.Errorf("got %d entries, want 20", len(entries))
	}

	outOfOrder := 0
	var size int64
	ops := map[string]int{}
	op, err := ParseTemplate(DefaultOp)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if i > 0 && entries[i].Time.Before(entries[i-1].Time) {
			outOfOrder++
		}
		size += entries[i].Bytes
		ops[op.Expand(&entries[i])]++
	}
	if outOfOrder != 2 {
		t.Errorf("%d entries are older than the one before, want 2", outOfOrder)
	}
	if want := int64(70_000_000_000 + 203023 + 171717 + 5120 + 8192 + 209 + 12 + 44 + 226 + 1 + 381 + 9 + 5 + 512); size != want {
		t.Errorf("the entries have %d bytes, want %d", size, want)
	}
	want := map[string]int{
		"GET /docs/intro": 3, "GET /docs/intro/a": 1, "GET /docs/intro/images/details.png": 1, "GET /docs/intro/images/overview.png": 1,
		"POST /login": 1, "GET /": 1, "DELETE /api/v1/items/{id}": 1, "GET /search": 1,
		"HEAD /robots.txt": 1, "GET /files/{id}": 1, "GET /a": 2, "OPTIONS *": 1,
		"CONNECT mail.example.com:25": 1, "GET /old": 1, "GET /private": 1, "GET /b": 1, "PROPFIND /dav": 1,
	}
	if !maps.Equal(ops, want) {
		t.Errorf("operations\n got %v\nwant %v", ops, want)
	}
}

func TestReaderReadsConcatenatedGzipMembers(t *testing.T) {
	plain, plainBad := readAll(t, bytes.NewReader(readSample(t, "sample.log")))
	zipped, zippedBad := readAll(t, bytes.NewReader(readSample(t, "sample.log.gz")))
	if !slices.Equal(plain, zipped) {
		t.Errorf("the gzip log has %d entries, which are not the %d of the plain one", len(zipped), len(plain))
	}
	if len(zippedBad) != len(plainBad) {
		t.Errorf("the gzip log has %d bad lines, want %d", len(zippedBad), len(plainBad))
	}
}

func TestReaderReadsAnyChunks(t *testing.T) {
	want, _ := readAll(t, bytes.NewReader(readSample(t, "sample.log")))
	for _, name := range []string{"sample.log", "sample.log.gz"} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"one byte at a time": iotest.OneByteReader, "data with the error": iotest.DataErrReader, "half reads": iotest.HalfReader,
		} {
			got, _ := readAll(t, wrap(bytes.NewReader(readSample(t, name))))
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %d entries, which are not the %d wanted", name, how, len(got), len(want))
			}
		}
	}
}

func TestReaderOfSmallLogs(t *testing.T) {
	const line = commonPrefix + `"GET / HTTP/1.1" 200 1`
	tests := []struct {
		name, log    string
		entries, bad int
	}{
		{"empty", "", 0, 0},
		{"one byte", "x", 0, 1},
		{"only blank lines", "\n\r\n \t\n", 0, 0},
		{"no ending", line, 1, 0},
		{"Windows endings", line + "\r\n" + line + "\r\n", 2, 0},
		{"bad line at the end", line + "\nx", 1, 1},
		{"bad line first", "x\n" + line, 1, 1},
		{"like bzip2, but a host", strings.Replace(line, "192.0.2.1", "BZhost", 1), 1, 0},
	}
	for _, tt := range tests {
		entries, bad := readAll(t, strings.NewReader(tt.log))
		if len(entries) != tt.entries || len(bad) != tt.bad {
			t.Errorf("%s: got %d entries and %d bad lines, want %d and %d", tt.name, len(entries), len(bad), tt.entries, tt.bad)
		}
	}
}

func TestReaderLimitsLines(t *testing.T) {
	const line = commonPrefix + `"GET / HTTP/1.1" 200 1`
	head := commonPrefix + `"GET /`
	tail := ` HTTP/1.1" 200 1`
	longest := head + strings.Repeat("a", MaxLine-len(head)-len(tail)) + tail
	for _, ending := range []string{"\n", "\r\n"} {
		for excess, wantLines := range map[int][]int{0: {1, 2, 3}, 1: {1, 3}, 2: {1, 3}, 3: {1, 3}, 5 * MaxLine: {1, 3}} {
			middle := strings.Replace(longest, "a", strings.Repeat("a", excess+1), 1)
			checkLines(t, fmt.Sprintf("%d bytes too long, %q", excess, ending), line+ending+middle+ending+line, wantLines)
		}
	}
	for excess, wantLines := range map[int][]int{0: {1, 2}, 1: {1}, 2: {1}, 3: {1}, 5 * MaxLine: {1}} {
		middle := strings.Replace(longest, "a", strings.Repeat("a", excess+1), 1)
		checkLines(t, fmt.Sprintf("%d bytes too long, at the end", excess), line+"\n"+middle, wantLines)
	}
}

// checkLines checks that the log has entries at these lines, and one line that
// is too long if it is not among them, line 2.
func checkLines(t *testing.T, what, log string, want []int) {
	t.Helper()
	entries, bad := readAll(t, strings.NewReader(log))
	var got []int
	for _, e := range entries {
		got = append(got, e.Line)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: entries at lines %v, want %v", what, got, want)
	}
	if slices.Contains(want, 2) {
		if len(bad) != 0 {
			t.Errorf("%s: %v", what, bad[0])
		}
		return
	}
	if len(bad) != 1 {
		t.Fatalf("%s: %d parse errors, want 1", what, len(bad))
	}
	if bad[0].Line != 2 || !strings.Contains(bad[0].Reason, "longer than 65536 bytes") || len(bad[0].Text) > maxExcerpt {
		t.Errorf("%s: got %v", what, bad[0])
	}
}

func TestReaderMemoryIsBounded(t *testing.T) {
	// One line of 16 MiB without an ending, in a gzip file of 16 KiB.
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	chunk := bytes.Repeat([]byte("a"), 1<<20)
	for range 16 {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, bad := readAll(t, &file)
	runtime.ReadMemStats(&after)
	if len(bad) != 1 {
		t.Fatalf("got %d parse errors, want 1", len(bad))
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 512<<10 {
		t.Errorf("reading a line of 16 MiB allocates %d bytes in all, want at most 512 KiB", got)
	}
}

// gzipped compresses content.
func gzipped(t *testing.T, content []byte) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return &out
}

func TestReaderSaysWhyItCannotRead(t *testing.T) {
	zipped := readSample(t, "sample.log.gz")
	failing := errors.New("disk on fire")
	tests := []struct {
		name string
		log  io.Reader
		want string
	}{
		{"zstd", strings.NewReader("\x28\xb5\x2f\xfd..."), "compressed with zstd"},
		{"xz", strings.NewReader("\xfd7zXZ\x00..."), "compressed with xz"},
		{"bzip2", strings.NewReader("BZh91AY&SY..."), "compressed with bzip2"},
		{"tar", strings.NewReader("access.log" + strings.Repeat("\x00", 247) + "ustar  \x00root"), "it is a tar archive"},
		{"zip", strings.NewReader("PK\x03\x04..."), "compressed with zip"},
		{"UTF-16 with a mark", strings.NewReader("\xff\xfe1\x00"), "is text in UTF-16: want UTF-8 (iconv -f UTF-16 -t UTF-8 makes that)"},
		{"UTF-16, the other way round", strings.NewReader("\xfe\xff\x001"), "is text in UTF-16"},
		{"UTF-16 without a mark", strings.NewReader("1\x002\x00"), "is text in UTF-16"},
		{"only the magic of gzip", strings.NewReader("\x1f\x8b"), "ends in the middle"},
		{"not gzip after the magic", strings.NewReader("\x1f\x8b3456789012345"), "not gzip"},
		{"gzip twice", gzipped(t, zipped), "compressed with gzip twice"},
		{"gzip cut short", bytes.NewReader(zipped[:len(zipped)-20]), "ends in the middle"},
		{"junk after gzip", io.MultiReader(bytes.NewReader(zipped), strings.NewReader("more than ten bytes")), "not gzip"},
		{"failing at once", iotest.ErrReader(failing), "read log: disk on fire"},
		{"failing later", io.MultiReader(bytes.NewReader(readSample(t, "sample.log")), iotest.ErrReader(failing)), "read log: disk on fire"},
	}
	for _, tt := range tests {
		reader, err := NewReader(tt.log)
		if err == nil {
			err = finalError(reader)
			if _, again := reader.Next(); !errors.Is(again, err) {
				t.Errorf("%s: Next returns %v and then %v", tt.name, err, again)
			}
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
		}
		if strings.Contains(tt.name, "failing") && !errors.Is(err, failing) {
			t.Errorf("%s: %v does not wrap the reader's error", tt.name, err)
		}
	}
}

// finalError is the error that ends the reading.
func finalError(r *Reader) error {
	for {
		_, err := r.Next()
		var parseErr *ParseError
		if err != nil && !errors.As(err, &parseErr) {
			return err
		}
	}
}

func TestReaderDropsTheLineAnErrorCutShort(t *testing.T) {
	const line = commonPrefix + `"GET / HTTP/1.1" 200 1234`
	reader, err := NewReader(io.MultiReader(strings.NewReader(line+"\n"+line[:len(line)-2]), iotest.ErrReader(errors.New("gone"))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Next(); err != nil {
		t.Fatalf("the first line: %v", err)
	}
	if e, err := reader.Next(); err == nil {
		t.Errorf("the line cut short is read as %+v", e)
	}
}

func TestBytesReadEndsAtTheSizeOfTheFile(t *testing.T) {
	for _, name := range []string{"sample.log", "sample.log.gz"} {
		data := readSample(t, name)
		reader, err := NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		// A goroutine that watches, for the race detector and because the
		// count must never fall.
		done := make(chan struct{})
		var watcher sync.WaitGroup
		watcher.Go(func() {
			for last := int64(0); ; {
				n := reader.BytesRead()
				if n < last || n > int64(len(data)) {
					t.Errorf("%s: BytesRead was %d and is %d, of %d", name, last, n, len(data))
				}
				last = n
				select {
				case <-done:
					return
				default:
				}
			}
		})
		if err := finalError(reader); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		close(done)
		watcher.Wait()
		if n := reader.BytesRead(); n != int64(len(data)) {
			t.Errorf("%s: BytesRead is %d at the end, want %d", name, n, len(data))
		}
	}
}

func TestBytesReadIsNotFarAhead(t *testing.T) {
	log := strings.Repeat(benchmarkLine+"\n", 2000)
	reader, err := NewReader(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
		parsed := int64(i+1) * int64(len(benchmarkLine)+1)
		if ahead := reader.BytesRead() - parsed; ahead < 0 || ahead > int64(lineBuffer+rawBuffer) {
			t.Fatalf("after %d bytes of entries BytesRead is %d ahead, want at most %d", parsed, ahead, lineBuffer+rawBuffer)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	log := strings.Repeat(benchmarkLine+"\n", 1000)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		reader, err := NewReader(strings.NewReader(log))
		if err != nil {
			b.Fatal(err)
		}
		if err := finalError(reader); !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
}
