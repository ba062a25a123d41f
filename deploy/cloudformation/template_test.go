package cloudformation

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const templateFile = "limits.yaml"

// template is a template whose references are written as in a !Sub: ${Name}, ${Name.Attribute}.
type template map[string]any

// readTemplate returns the text of the template.
func readTemplate(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(templateFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parseTemplate(text string) (template, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 {
		return nil, fmt.Errorf("it has %d documents", len(document.Content))
	}
	value, err := valueOf(document.Content[0])
	if err != nil {
		return nil, err
	}
	top, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is no mapping")
	}
	return top, nil
}

// valueOf returns what a node means.
func valueOf(node *yaml.Node) (any, error) {
	tag := node.Tag
	switch {
	case tag == "!Sub" && node.Kind == yaml.ScalarNode:
		return node.Value, nil
	case (tag == "!Ref" || tag == "!GetAtt") && node.Kind == yaml.ScalarNode:
		return "${" + node.Value + "}", nil
	case slices.Contains([]string{"!If", "!Not", "!Equals"}, tag) && node.Kind == yaml.SequenceNode:
		list, err := listOf(node)
		return map[string]any{"Fn::" + tag[1:]: list}, err
	case strings.HasPrefix(tag, "!") && !strings.HasPrefix(tag, "!!"):
		return nil, fmt.Errorf("line %d: the tests do not know %s here", node.Line, tag)
	}
	switch node.Kind {
	case yaml.SequenceNode:
		return listOf(node)
	case yaml.MappingNode:
		return mappingOf(node)
	case yaml.ScalarNode:
		if strings.Contains(node.Value, "${") {
			return nil, fmt.Errorf("line %d: ${ without !Sub is taken as it stands", node.Line)
		}
		var value any
		err := node.Decode(&value)
		return value, err
	default:
		return nil, fmt.Errorf("line %d: CloudFormation has no such thing", node.Line)
	}
}

func listOf(node *yaml.Node) (list []any, err error) {
	for _, child := range node.Content {
		value, err := valueOf(child)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

func mappingOf(node *yaml.Node) (map[string]any, error) {
	mapping := map[string]any{}
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i].Value
		if _, twice := mapping[key]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice", node.Content[i].Line, key)
		}
		value, err := valueOf(node.Content[i+1])
		if err != nil {
			return nil, err
		}
		mapping[key] = value
	}
	return mapping, nil
}

// at returns what stands at a path of keys and indices, or nil.
func at(value any, path ...string) any {
	for _, step := range path {
		switch v := value.(type) {
		case template:
			value = v[step]
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// resources returns the names of all resources of a type, sorted.
func (t template) resources(kind string) (names []string) {
	all, _ := at(t, "Resources").(map[string]any)
	for name, resource := range all {
		if at(resource, "Type") == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// textsOf returns a string or a list of them as a list.
func textsOf(value any) (texts []string, err error) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%v is no text", v)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func TestTemplateIsReadAsCloudFormationReadsIt(t *testing.T) {
	for text, want := range map[string]string{
		"a: !Ref B":                "map[a:${B}]",
		"a: !GetAtt B.Arn":         "map[a:${B.Arn}]",
		"a: !Sub '${B.Arn}/*'":     "map[a:${B.Arn}/*]",
		"a: !If [B, !Ref C, d]":    "map[a:map[Fn::If:[B ${C} d]]]",
		"a: [true, 1, '1']":        "map[a:[true 1 1]]",
		"a: ${B}":                  "line 1: ${ without !Sub is taken as it stands",
		"a: !Join ['', [b]]":       "line 1: the tests do not know !Join here",
		"a: !Sub ['${b}', {b: c}]": "line 1: the tests do not know !Sub here",
		"a: 1\na: 2":               "line 2: a is there twice",
		"a":                        "it is no mapping",
	} {
		parsed, err := parseTemplate(text)
		got := fmt.Sprint(map[string]any(parsed))
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
