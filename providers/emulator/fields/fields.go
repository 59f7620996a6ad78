// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Field is a field of a model. Its name is the path in JSON.
type Field struct {
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	ReadOnly bool     `json:"readOnly"`
	Values   []string `json:"values"`
}

// Models are the models of a description by name, each with its fields by name.
type Models map[string]map[string]Field

// Parse reads a description. It panics if the description is invalid, because a description is part of the
// program.
func Parse(description []byte) Models {
	var d struct{ Models Models }
	if err := json.Unmarshal(description, &d); err != nil {
		panic(err)
	}
	return d.Models
}

// ReadOnly is the suffix of the problem of a read-only field.
const ReadOnly = ": is read only"

// Check returns the sorted differences between the data and a model. None means that the data may be sent.
func (m Models) Check(model string, data []byte) []string {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return []string{"it is no JSON: " + err.Error()}
	}
	problems := m.checkValue(model, value, model)
	slices.Sort(problems)
	return problems
}

func (m Models) checkValue(kind string, value any, at string) (problems []string) {
	wrong := []string{fmt.Sprintf("%s: %T is not of the type %s", at, value, kind)}
	element, list := strings.CutPrefix(kind, "[]")
	member, dictionary := strings.CutPrefix(kind, "{}")
	switch {
	case kind == "any" || kind == "Object":
		return nil
	case list:
		all, ok := value.([]any)
		if !ok {
			return wrong
		}
		for i, v := range all {
			problems = append(problems, m.checkValue(element, v, fmt.Sprintf("%s[%d]", at, i))...)
		}
		return problems
	case dictionary:
		all, ok := value.(map[string]any)
		if !ok {
			return wrong
		}
		for k, v := range all {
			problems = append(problems, m.checkValue(member, v, at+"["+k+"]")...)
		}
		return problems
	case kind == "Number":
		if _, ok := value.(float64); !ok {
			return wrong
		}
	case kind == "Boolean":
		if _, ok := value.(bool); !ok {
			return wrong
		}
	case m[kind] != nil:
		all, ok := value.(map[string]any)
		if !ok {
			return wrong
		}
		return m.checkModel(m[kind], all, at)
	default: // String, Enum, DateTime, ByteArray
		if _, ok := value.(string); !ok {
			return wrong
		}
	}
	return nil
}

// checkModel checks the fields of an object. Fields with a path such as properties.image are in an inner object.
func (m Models) checkModel(fields map[string]Field, all map[string]any, at string) (problems []string) {
	nested := map[string]map[string]Field{}
	for name, f := range fields {
		if first, rest, found := strings.Cut(name, "."); found {
			if nested[first] == nil {
				nested[first] = map[string]Field{}
			}
			nested[first][rest] = f
		}
	}
	for name, v := range all {
		f, ok := fields[name]
		switch {
		case nested[name] != nil:
			inner, isObject := v.(map[string]any)
			if !isObject {
				problems = append(problems, at+"."+name+": want an object")
				continue
			}
			problems = append(problems, m.checkModel(nested[name], inner, at+"."+name)...)
		case !ok:
			problems = append(problems, at+"."+name+": is not known")
		case f.ReadOnly:
			problems = append(problems, at+"."+name+ReadOnly)
		default:
			problems = append(problems, m.checkValue(f.Type, v, at+"."+name)...)
			if text, isText := v.(string); isText && len(f.Values) > 0 && !slices.Contains(f.Values, text) {
				problems = append(problems, at+"."+name+": "+text+": want one of "+strings.Join(f.Values, ", "))
			}
		}
	}
	for name, f := range fields {
		if f.Required && !strings.Contains(name, ".") && all[name] == nil {
			problems = append(problems, at+"."+name+": is missing")
		}
	}
	for first, inner := range nested {
		if all[first] == nil {
			problems = append(problems, m.checkModel(inner, nil, at+"."+first)...)
		}
	}
	return problems
}
