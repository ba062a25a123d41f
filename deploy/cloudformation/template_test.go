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

// templateFiles are the templates; the second builds on the first, and the others on none.
var templateFiles = []string{"limits.yaml", "control-plane.yaml", "proxy-alarms.yaml", "store.yaml", "store-serverless.yaml"}

// template is a template whose references are written as in a !Sub: ${Name}, ${Name.Attribute}.
type template map[string]any

// readTemplates returns the texts of the templates.
func readTemplates(t *testing.T) (texts []string) {
	t.Helper()
	for _, name := range templateFiles {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// parseTemplates returns the resources of all templates as if they were in one. It
// replaces an import by the value that the first template exports.
func parseTemplates(texts []string) (template, error) {
	resources, exports := map[string]any{}, map[string]string{}
	for i, text := range texts {
		parsed, err := parseTemplate(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", templateFiles[i], err)
		}
		if i == 0 {
			if exports, err = exportsOf(parsed); err != nil {
				return nil, err
			}
		}
		found, _ := at(parsed, "Resources").(map[string]any)
		for name, resource := range found {
			if resources[name] != nil {
				return nil, fmt.Errorf("%s: %s is in another template, too", templateFiles[i], name)
			}
			if resources[name], err = resolve(resource, exports); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", templateFiles[i], name, err)
			}
		}
	}
	return template{"Resources": resources}, nil
}

// exportsOf returns the exports of a template, by the names under which a template with
// its stack's name as ${LimitsStack} imports them.
func exportsOf(t template) (map[string]string, error) {
	exports := map[string]string{}
	outputs, _ := at(t, "Outputs").(map[string]any)
	for name, output := range outputs {
		export := at(output, "Export", "Name")
		if export == nil {
			continue
		}
		value, ok := at(output, "Value").(string)
		if export != "${AWS::StackName}-"+name || !ok {
			return nil, fmt.Errorf("output %s is exported as %v: the tests do not understand that", name, export)
		}
		exports["${LimitsStack}-"+name] = value
	}
	return exports, nil
}

// resolve returns a value with its imports replaced.
func resolve(value any, exports map[string]string) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		resolved := map[string]any{}
		for key, child := range v {
			var err error
			if resolved[key], err = resolve(child, exports); err != nil {
				return nil, err
			}
		}
		if name, ok := v["Fn::ImportValue"].(string); ok {
			exported, there := exports[name]
			if !there {
				return nil, fmt.Errorf("no template exports %s", name)
			}
			return exported, nil
		}
		if parts, ok := resolved["Fn::Sub"].([]any); ok {
			return substituted(parts)
		}
		return resolved, nil
	case []any:
		list := make([]any, len(v))
		for i, child := range v {
			var err error
			if list[i], err = resolve(child, exports); err != nil {
				return nil, err
			}
		}
		return list, nil
	default:
		return value, nil
	}
}

// substituted returns the text of a !Sub with names of its own.
func substituted(parts []any) (any, error) {
	if len(parts) == 2 {
		text, isText := parts[0].(string)
		names, isMapping := parts[1].(map[string]any)
		for name, value := range names {
			text = strings.ReplaceAll(text, "${"+name+"}", fmt.Sprint(value))
		}
		if isText && isMapping {
			return text, nil
		}
	}
	return nil, fmt.Errorf("%v is no !Sub", parts)
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

// valueOf returns the value of a node.
func valueOf(node *yaml.Node) (any, error) {
	tag := node.Tag
	switch {
	case tag == "!Sub" && node.Kind == yaml.ScalarNode:
		return node.Value, nil
	case (tag == "!Ref" || tag == "!GetAtt") && node.Kind == yaml.ScalarNode:
		return "${" + node.Value + "}", nil
	case tag == "!Condition" && node.Kind == yaml.ScalarNode:
		return map[string]any{"Condition": node.Value}, nil
	case tag == "!Sub" && node.Kind == yaml.SequenceNode:
		var list []any
		for _, child := range node.Content {
			value := any(child.Value) // in the first, ${ is meant
			if child.Kind != yaml.ScalarNode {
				var err error
				if value, err = valueOf(child); err != nil {
					return nil, err
				}
			}
			list = append(list, value)
		}
		return map[string]any{"Fn::Sub": list}, nil
	case slices.Contains([]string{"!If", "!Not", "!Or", "!Equals"}, tag) && node.Kind == yaml.SequenceNode:
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

// at returns the value at a path of keys and indices, or nil.
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
		"a: !Sub ['${b}', {b: c}]": "map[a:map[Fn::Sub:[${b} map[b:c]]]]",
		"a: !Condition B":          "map[a:map[Condition:B]]",
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

func TestTemplatesAreReadAsOne(t *testing.T) {
	const exporting = "Resources: {A: {Type: B}}\nOutputs: {C: {Value: !Ref A, Export: {Name: !Sub '${AWS::StackName}-C'}}, D: {Value: e}}\n"
	for text, want := range map[string]string{
		"Resources: {F: {Fn::ImportValue: !Sub '${LimitsStack}-C'}}":                         "map[A:map[Type:B] F:${A}]",
		"Resources: {F: [!Sub ['${G}/*', {G: {Fn::ImportValue: !Sub '${LimitsStack}-C'}}]]}": "map[A:map[Type:B] F:[${A}/*]]",
		"Resources: {F: {Fn::ImportValue: !Sub '${LimitsStack}-D'}}":                         "control-plane.yaml: F: no template exports ${LimitsStack}-D",
		"Resources: {A: {Type: F}}":                                                          "control-plane.yaml: A is in another template, too",
	} {
		parsed, err := parseTemplates([]string{exporting, text})
		got := fmt.Sprint(at(parsed, "Resources"))
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestExportsAreImported checks that the templates import every export, because an export
// keeps an output from being changed.
func TestExportsAreImported(t *testing.T) {
	texts := readTemplates(t)
	first, err := parseTemplate(texts[0])
	if err != nil {
		t.Fatal(err)
	}
	exports, err := exportsOf(first)
	if err != nil {
		t.Fatal(err)
	}
	for name := range exports {
		if !strings.Contains(texts[1], "!Sub '"+name+"'") {
			t.Errorf("%s does not import %s", templateFiles[1], name)
		}
	}
}
