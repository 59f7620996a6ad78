// SPDX-License-Identifier: Apache-2.0

package zun

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// fieldsFile has the schemas of bodies and queries and the states that allow an action, with their source and
// its date.
//
//go:embed fields.json
var fieldsFile []byte

// rules is fieldsFile.
type rules struct {
	Bodies, Queries map[string]schema
	States          map[string][]string
}

// schema is the part of JSON Schema, draft 4, that Zun uses.
type schema struct {
	Type                 any
	Enum                 []any
	Pattern              string
	Minimum, Maximum     *float64
	MinLength, MaxLength *int
	Properties           map[string]schema
	PatternProperties    map[string]schema
	AdditionalProperties *bool
	Required             []string
	Items                *schema
	AllOf, AnyOf, OneOf  []schema
	Not                  *schema
}

var table = sync.OnceValue(func() rules {
	var r rules
	if err := json.Unmarshal(fieldsFile, &r); err != nil {
		panic(err) // the file is built in
	}
	return r
})

// kinds returns the names of the types of a value.
func kinds(v any) []string {
	switch v := v.(type) {
	case nil:
		return []string{"null"}
	case bool:
		return []string{"boolean"}
	case string:
		return []string{"string"}
	case float64:
		if v == float64(int64(v)) {
			return []string{"integer", "number"}
		}
		return []string{"number"}
	case []any:
		return []string{"array"}
	}
	return []string{"object"}
}

// check refuses a value that the schema does not allow.
func (s schema) check(at string, v any) error {
	names := []any{s.Type}
	if several, ok := s.Type.([]any); ok {
		names = several
	}
	is := kinds(v)
	if s.Type != nil && !slices.ContainsFunc(names, func(name any) bool { return slices.Contains(is, fmt.Sprint(name)) }) {
		return fmt.Errorf("invalid input for field '%s'. Value: '%v'. it is not of type %v", at, v, s.Type)
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(one any) bool { return reflect.DeepEqual(one, v) }) {
		return fmt.Errorf("invalid input for field '%s'. Value: '%v'. it is not one of %v", at, v, s.Enum)
	}
	text, isText := v.(string)
	number, isNumber := v.(float64)
	if isText {
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text) {
			return fmt.Errorf("invalid input for field '%s'. Value: '%s'. it does not match '%s'", at, text, s.Pattern)
		}
		if s.MinLength != nil && len(text) < *s.MinLength || s.MaxLength != nil && len(text) > *s.MaxLength {
			return fmt.Errorf("invalid input for field '%s'. Value: '%s'. it is too short or too long", at, text)
		}
		if n, err := strconv.ParseFloat(text, 64); err == nil { // Zun compares numbers in texts, too
			number, isNumber = n, true
		}
	}
	if isNumber && (s.Minimum != nil && number < *s.Minimum || s.Maximum != nil && number > *s.Maximum) {
		return fmt.Errorf("invalid input for field '%s'. Value: '%v'. it is too small or too large", at, v)
	}
	if list, ok := v.([]any); ok && s.Items != nil {
		for i, one := range list {
			if err := s.Items.check(at+"."+strconv.Itoa(i), one); err != nil {
				return err
			}
		}
	}
	if o, ok := v.(map[string]any); ok {
		if err := s.checkObject(at, o); err != nil {
			return err
		}
	}
	return s.checkOthers(at, v)
}

func (s schema) checkObject(at string, o map[string]any) error {
	for name, v := range o {
		p, known := s.Properties[name]
		if !known && s.AdditionalProperties != nil && !*s.AdditionalProperties {
			return fmt.Errorf("additional properties are not allowed ('%s' was unexpected)", name)
		}
		if known {
			if err := p.check(name, v); err != nil {
				return err
			}
		}
		for pattern, p := range s.PatternProperties {
			if regexp.MustCompile(pattern).MatchString(name) {
				if err := p.check(name, v); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range s.Required {
		if _, there := o[name]; !there {
			return fmt.Errorf("'%s' is a required property%s", name, map[bool]string{true: " of " + at}[at != ""])
		}
	}
	return nil
}

func (s schema) checkOthers(at string, v any) error {
	for _, all := range s.AllOf {
		if err := all.check(at, v); err != nil {
			return err
		}
	}
	for _, some := range []struct {
		of   []schema
		most int
	}{{s.AnyOf, len(s.AnyOf)}, {s.OneOf, 1}} {
		fits := 0
		for _, one := range some.of {
			if one.check(at, v) == nil {
				fits++
			}
		}
		if len(some.of) > 0 && (fits == 0 || fits > some.most) {
			return fmt.Errorf("invalid input for field '%s'. %v is valid under %d of the given schemas", at, v, fits)
		}
	}
	if s.Not != nil && s.Not.check(at, v) == nil {
		return fmt.Errorf("%v is not allowed for %v", s.Not.Required, at)
	}
	return nil
}

// CheckBody reports the problem for which Zun would refuse the shape of a body.
func CheckBody(operation string, body any) error { return table().Bodies[operation].check("", body) }

// checkQuery refuses a query that Zun does not take.
func checkQuery(operation string, query url.Values) error {
	s, known := table().Queries[operation]
	if !known {
		return nil
	}
	o := map[string]any{}
	for name, values := range query {
		o[name] = values[0]
	}
	return s.check("", o)
}
