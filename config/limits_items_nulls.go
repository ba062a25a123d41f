package config

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// leaveOutNulls writes conditions and overrides that are null in an item as a limits file has them, in which they are mistakes: an
// earlier release took them. A null override takes the place of other limits, as one without keys does.
func leaveOutNulls(n *yaml.Node) {
	for _, element := range n.Content {
		if n.Kind == yaml.SequenceNode && element.Kind == yaml.MappingNode {
			leaveOutNullWhen(element)
		}
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		for j := 1; key.Value == "overrides" && value.Kind == yaml.MappingNode && j < len(value.Content); j += 2 {
			if isNull(value.Content[j]) {
				value.Content[j] = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
			}
			leaveOutNullWhen(value.Content[j])
		}
		if key.Value == "shared" {
			leaveOutNulls(value)
		}
	}
}

// leaveOutNullWhen removes conditions of a limit that are null.
func leaveOutNullWhen(spec *yaml.Node) {
	for i := 0; i+1 < len(spec.Content); i += 2 {
		if spec.Content[i].Value == "when" && isNull(spec.Content[i+1]) {
			spec.Content = slices.Delete(spec.Content, i, i+2)
			return
		}
	}
}
