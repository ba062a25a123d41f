package limitimport

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

const (
	// maxIncludes bounds the files that include each other, as one may include itself.
	maxIncludes = 32
	// maxIncludedWords bounds the included files and their words: a few short files that include each other several times have
	// as many as they like.
	maxIncludedWords = 1_000_000
)

var errIncludedWords = fmt.Errorf("the included files have more than %d words", maxIncludedWords)

// nginxFiles are the files that nginx -T prints, the main one first.
type nginxFiles struct {
	files   []nginxFile
	written int // words of included files
}

// nginxFile is a file that nginx -T prints behind a line with its name.
type nginxFile struct {
	name     string // a clean path
	line     int    // of its name
	words    []nginxWord
	included bool
}

// beginOfFile matches the line that nginx -T prints before each file.
var beginOfFile = regexp.MustCompile(`(?m)^# configuration file (.+):\r?$`)

// beforeFiles matches what may stand before the first file: what nginx -t says, where both outputs are in one text.
var beforeFiles = regexp.MustCompile(`^(?:nginx: .*\n|\s)*$`)

// readNginxFiles splits a configuration into words, with those of the files that it includes if it is the output of nginx -T.
// Unused are the files that no include names. Lines are those of the text.
func readNginxFiles(text string) (words []nginxWord, unused []nginxFile, err error) {
	begins := beginOfFile.FindAllStringSubmatchIndex(text, -1)
	if len(begins) == 0 || !beforeFiles.MatchString(text[:begins[0][0]]) {
		words, err = nginxWords(text, 1)
		return words, nil, err
	}
	var f nginxFiles
	line, at := 1, 0
	for i, begin := range begins {
		end := len(text)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		line += strings.Count(text[at:begin[0]], "\n")
		at = begin[0]
		file := nginxFile{name: path.Clean(text[begin[2]:begin[3]]), line: line, included: i == 0}
		if file.words, err = nginxWords(text[at:end], line); err != nil {
			return nil, nil, err
		}
		f.files = append(f.files, file)
	}
	if words, err = f.include(f.files[0].words, 0); err != nil {
		return nil, nil, err
	}
	return words, slices.DeleteFunc(f.files, func(file nginxFile) bool { return file.included }), nil
}

// include replaces each include by the words of the files that it names. One that names no file stays if it is no pattern.
func (f *nginxFiles) include(words []nginxWord, depth int) (all []nginxWord, err error) {
	for i := 0; i < len(words); i++ {
		begins := i == 0 || slices.ContainsFunc([]string{";", "{", "}"}, words[i-1].is)
		if !begins || !words[i].is("include") || i+2 >= len(words) || !words[i+2].is(";") {
			all = append(all, words[i])
			continue
		}
		named := f.named(words[i+1].text)
		if len(named) == 0 && !strings.ContainsAny(words[i+1].text, "*?[") {
			all = append(all, words[i])
			continue
		}
		for _, file := range named {
			if depth == maxIncludes {
				return nil, at(words[i].line, fmt.Errorf("files include each other more than %d deep", maxIncludes))
			}
			file.included = true
			inner, err := f.include(file.words, depth+1)
			if err != nil {
				return nil, err
			}
			if f.written += 1 + len(inner); f.written > maxIncludedWords {
				return nil, at(words[i].line, errIncludedWords)
			}
			all = append(all, inner...)
		}
		i += 2
	}
	return all, nil
}

// named returns the files that the path or the pattern of an include names, in the order in which nginx reads them.
func (f *nginxFiles) named(pattern string) (files []*nginxFile) {
	if !path.IsAbs(pattern) {
		pattern = path.Join(path.Dir(f.files[0].name), pattern)
	}
	pattern = strings.ReplaceAll(path.Clean(pattern), "[!", "[^") // as path.Match has it
	for i := range f.files {
		name := f.files[i].name
		matches, err := path.Match(pattern, name)
		hidden := strings.HasPrefix(path.Base(name), ".") && !strings.HasPrefix(path.Base(pattern), ".")
		if name == pattern || err == nil && matches && !hidden {
			files = append(files, &f.files[i])
		}
	}
	slices.SortFunc(files, func(a, b *nginxFile) int { return strings.Compare(a.name, b.name) })
	return files
}

// remarkUnused remarks on files that are not read.
func (n *nginx) remarkUnused(files []nginxFile) {
	for _, file := range files {
		n.remark(file.line, "no include names %s: it is not read", limit.Shorten(file.name))
	}
}
