package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// maxPartDepth bounds how deep the parts of a table nest: limits do so less than ten deep.
const maxPartDepth = 100

var errPartDepth = fmt.Errorf("it nests deeper than %d", maxPartDepth)

// jsonNodes make of JSON what a YAML parser would make of it, of which JSON is a part: for a
// large table they take a fraction of the time and the memory. No goroutine may use them
// while another one does.
type jsonNodes struct {
	source  bytes.Reader
	decoder jsontext.Decoder
	nodes   []*yaml.Node // that were made
	used    int          // of them for the value that is read
}

// read returns the node of a value. It is overwritten by the next read.
func (j *jsonNodes) read(body []byte) (*yaml.Node, error) {
	j.used = 0
	j.source.Reset(body)
	// What is there twice is reported with all other mistakes, later.
	j.decoder.Reset(&j.source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	n, err := j.node(0)
	if err != nil {
		return nil, err
	}
	if _, err := j.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return n, nil
}

// node reads a value that is inside so many others.
func (j *jsonNodes) node(depth int) (*yaml.Node, error) {
	token, err := j.decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	n := j.next()
	switch token.Kind() {
	case jsontext.KindString:
		n.Tag, n.Value = "!!str", token.String()
	case jsontext.KindNumber:
		n.Tag, n.Value = "!!float", token.String()
		if _, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			n.Tag = "!!int"
		}
	case jsontext.KindTrue, jsontext.KindFalse:
		n.Tag, n.Value = "!!bool", token.String()
	case jsontext.KindNull:
		n.Tag, n.Value = "!!null", "null"
	case jsontext.KindBeginArray:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		return n, j.fill(n, jsontext.KindEndArray, depth+1)
	default:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		return n, j.fill(n, jsontext.KindEndObject, depth+1)
	}
	return n, nil
}

// fill reads the elements of a list, or the names and values of a mapping, up to its end.
func (j *jsonNodes) fill(n *yaml.Node, end jsontext.Kind, depth int) error {
	if depth > maxPartDepth {
		return errPartDepth
	}
	for j.decoder.PeekKind() != end {
		element, err := j.node(depth)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, element)
	}
	_, err := j.decoder.ReadToken() // the bracket
	return err
}

// next returns a node that is not used, for a scalar.
func (j *jsonNodes) next() *yaml.Node {
	if j.used == len(j.nodes) {
		j.nodes = append(j.nodes, &yaml.Node{})
	}
	n := j.nodes[j.used]
	j.used++
	*n = yaml.Node{Kind: yaml.ScalarNode, Line: 1, Content: n.Content[:0]}
	return n
}
