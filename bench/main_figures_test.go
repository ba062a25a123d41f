package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The main figures of the report of testdata.
var (
	samplePairs   = []string{"redis-p16", "idle-connections"}
	sampleFigures = []caseFigure{{"redis-p16", "CPU of proxy and Redis"}, {"failover", "error replies"}, {"idle-connections", "any"}}
)

const samplePage = "# Page\n\nBefore.\n\n" + blockBegin + "Old figures.\n" + blockEnd + "\nAfter.\n"

func TestMainFiguresReplaceTheBlock(t *testing.T) {
	r := readSample(t)
	page, err := r.updatePage([]byte(samplePage), samplePairs, sampleFigures)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "main.md", page)
	again, err := r.updatePage(page, samplePairs, sampleFigures)
	if err != nil || !bytes.Equal(again, page) {
		t.Errorf("a second update, with error %v, changes the page to\n%s", err, again)
	}
}

func TestMainFiguresNeedMarksAndFigures(t *testing.T) {
	for name, test := range map[string]struct {
		page    string
		pairs   []string
		figures []caseFigure
		want    string
	}{
		"no begin":       {page: "text\n" + blockEnd, want: "mark"},
		"no end":         {page: blockBegin + "text\n", want: "mark"},
		"end first":      {page: blockEnd + blockBegin, want: "mark"},
		"no pair":        {page: samplePage, pairs: []string{"gone"}, want: "no gone"},
		"no throughput":  {page: samplePage, pairs: []string{"failover"}, want: `failover has no "throughput"`},
		"no case":        {page: samplePage, figures: []caseFigure{{"gone", "p50"}}, want: "no gone"},
		"no such figure": {page: samplePage, figures: []caseFigure{{"redis-p16", "gone"}}, want: `redis-p16 has no "gone"`},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := readSample(t).updatePage([]byte(test.page), test.pairs, test.figures)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %q; the page is\n%s", err, test.want, page)
			}
		})
	}
}

// TestMainFiguresAreOfCasesOfEveryRun: make bench-docs refuses a report without them.
func TestMainFiguresAreOfCasesOfEveryRun(t *testing.T) {
	every, err := pick(Cases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	wanted := slices.Clone(mainPairs)
	for _, m := range mainFigures {
		wanted = append(wanted, m.name)
	}
	for _, name := range wanted {
		if !slices.Contains(names(every), name) {
			t.Errorf("a main figure is of %s, which make bench does not run", name)
		}
	}
}

func TestDocsAreNotWrittenOfAnIncompleteReport(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, mainPage)
	if err := os.WriteFile(path, []byte(samplePage), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := readSample(t).WriteDocs(folder); err == nil {
		t.Error("a report of three cases has all main figures")
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v", files, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != samplePage {
		t.Errorf("the page became, with error %v,\n%s", err, text)
	}
}

// TestDocsAreWritten writes the pages of a report with every main figure, over the page of
// the documentation.
func TestDocsAreWritten(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", mainPage))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, mainPage)
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	r := completeReport()
	if err := r.WriteDocs(folder); err != nil {
		t.Fatal(err)
	}
	updated, err := os.ReadFile(path)
	if err != nil || bytes.Equal(updated, page) || !bytes.Contains(updated, []byte("12,345")) {
		t.Errorf("the page became, with error %v,\n%s", err, updated)
	}
	tables, err := os.ReadFile(filepath.Join(folder, tablesPage))
	if err != nil || !bytes.Equal(tables, r.tables()) {
		t.Errorf("the tables are, with error %v,\n%s", err, tables)
	}
	for _, m := range mainFigures {
		if section := "\n### " + m.name + "\n"; !bytes.Contains(tables, []byte(section)) {
			t.Errorf("the tables lack the section of %s, which the page links", m.name)
		}
	}
}

// completeReport returns a report that has every main figure.
func completeReport() *Report {
	r := new(Report)
	result := func(name string) *Result {
		if c, err := r.find(name); err == nil {
			return c
		}
		r.Cases = append(r.Cases, Result{Name: name, Title: name})
		return &r.Cases[len(r.Cases)-1]
	}
	for _, name := range mainPairs {
		c := result(name)
		c.Sides = []SideResult{{PerSecond: once(12345)}, {PerSecond: once(1)}}
		c.Figures = append(c.Figures, Figure{Name: "throughput", Unit: Ratio})
	}
	for _, m := range mainFigures {
		c := result(m.name)
		c.Figures = append(c.Figures, Figure{Name: m.figure})
	}
	return r
}
