// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// print writes the effective settings as a configuration file, with the origin of each setting in a comment.
func (r *resolved) print() ([]byte, error) {
	document := &yaml.Node{Kind: yaml.MappingNode}
	add := func(name string, value *yaml.Node, comment string) {
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: name}
		if value.Kind == yaml.MappingNode {
			key.LineComment = comment
		} else {
			value.LineComment = comment
		}
		document.Content = append(document.Content, key, value)
	}
	add("apiVersion", &yaml.Node{Kind: yaml.ScalarNode, Value: configAPIVersion}, "")
	add("kind", &yaml.Node{Kind: yaml.ScalarNode, Value: configKind}, "")
	for _, s := range settings() {
		if s.field != "" {
			add(s.field, yamlValue(r.flags, r.flags.Lookup(s.flag)), r.origins[s.flag])
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(document); err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return out.Bytes(), nil
}

// yamlValue returns the value of f, a flag of fs.
func yamlValue(fs *pflag.FlagSet, f *pflag.Flag) *yaml.Node {
	switch f.Value.Type() {
	case "stringToString":
		pairs, _ := fs.GetStringToString(f.Name) // it exists and has this type
		mapping := &yaml.Node{Kind: yaml.MappingNode}
		if len(pairs) == 0 {
			mapping.Style = yaml.FlowStyle
		}
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			mapping.Content = append(mapping.Content, yamlText(key), yamlText(pairs[key]))
		}
		return mapping
	case "stringSlice":
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		if values, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range values.GetSlice() {
				list.Content = append(list.Content, yamlText(value))
			}
		}
		return list
	case "string":
		return yamlText(f.Value.String())
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: f.Value.String()}
}

// yamlText returns a string node, quoted if YAML would read another type.
func yamlText(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}
