package bench

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the expected pages into testdata")

// readSample reads the report of testdata.
func readSample(t *testing.T) *Report {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := ReadReport(file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("this is not what stands in %s (-update writes it):\n%s", path, got)
	}
}

func TestReportIsWrittenAsItIsRead(t *testing.T) {
	var text bytes.Buffer
	if err := readSample(t).WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", text.Bytes())
}

func TestReportOfAnotherFormatIsRefused(t *testing.T) {
	for _, text := range []string{`{"format": 99}`, `{}`, `not JSON`} {
		if _, err := ReadReport(strings.NewReader(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

func TestReportForPeople(t *testing.T) {
	var text bytes.Buffer
	readSample(t).WriteText(&text, false)
	golden(t, "report.txt", text.Bytes())
}

func TestColoursChangeNothingElse(t *testing.T) {
	var plainText, coloured bytes.Buffer
	readSample(t).WriteText(&plainText, false)
	readSample(t).WriteText(&coloured, true)
	if !bytes.Contains(coloured.Bytes(), []byte(red+"missed")) {
		t.Error("a missed goal is not red")
	}
	// A cell at the end of a line is padded after its colour.
	stripped := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAll(coloured.Bytes(), nil)
	if !bytes.Equal(regexp.MustCompile(` +\n`).ReplaceAll(stripped, []byte("\n")), plainText.Bytes()) {
		t.Errorf("without colours it is\n%s", stripped)
	}
}

func TestTablesOfTheDocs(t *testing.T) {
	golden(t, "tables.md", readSample(t).tables())
}

func TestEveryFigureOfThePageNamesItsCommand(t *testing.T) {
	r := readSample(t)
	goals, sections, _ := strings.Cut(string(r.tables()), "\n## Cases\n")
	for _, section := range strings.Split(sections, "\n### ")[1:] {
		name, _, _ := strings.Cut(section, "\n")
		if !strings.Contains(section, "`make bench ONLY="+name+"`") {
			t.Errorf("the section of %s does not say what prints it:\n%s", name, section)
		}
	}
	for _, c := range r.Cases {
		for _, f := range c.Figures {
			if f.Goal != nil && !strings.Contains(goals, "| "+f.Name+" | "+f.goalText()+" |") {
				t.Errorf("the goals lack %s of %s", f.Name, c.Name)
			}
		}
	}
}
