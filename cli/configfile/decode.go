// SPDX-License-Identifier: Apache-2.0

// Package configfile decodes YAML and JSON configuration files strictly.
//
// Every error names the file and the line, and the error for an unknown field suggests the most similar known
// field. Field names come from the json tags, and types that decode themselves from JSON (quantities, durations)
// work.
//
// Note: a repeated field, a value of another type, or a second document in the file is an error.
package configfile

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Decode reads data, the contents of the file called name, into the struct or map at into. Fields that the file
// does not have keep their value, so set defaults before the call. Several errors are joined. The errors do not
// quote a value that its type reads as text (encoding.TextUnmarshaler), except for the errors of this type.
func Decode(name string, data []byte, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("configfile: decode into %T, want a pointer", into))
	}
	root, err := parse(name, data)
	if err != nil || root == nil {
		return err
	}
	d := decoder{file: name}
	d.value(root, target.Elem(), "")
	return errors.Join(d.errs...)
}

// Position is the position of a value in a file.
type Position struct {
	// File is the name that was passed to Decode or Fields.
	File string
	// Line counts from 1.
	Line int
}

// String returns file:line.
func (p Position) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Field is a top-level field of a file.
type Field struct {
	// Name is its name as it is written.
	Name string
	// Position is the position of the field.
	Position Position
	node     *yaml.Node
	column   int // column of the name in the line
}

// Fields returns the top-level fields of the file, in order. A repeated field is an error.
func Fields(name string, data []byte) ([]Field, error) {
	root, err := parse(name, data)
	if err != nil || root == nil {
		return nil, err
	}
	d, fields := decoder{file: name}, []Field{}
	d.mapping(root, "", func(key, val *yaml.Node) {
		fields = append(fields, Field{Name: key.Value, Position: Position{File: name, Line: key.Line}, node: val, column: key.Column})
	})
	return fields, errors.Join(d.errs...)
}

// Rename returns the contents of the file with another name for the field, at the same place.
func (f Field) Rename(data []byte, name string) []byte {
	begin := 0
	for range f.Position.Line - 1 {
		begin += bytes.IndexByte(data[begin:], '\n') + 1
	}
	for range f.column - 1 { // columns count characters, not bytes
		_, size := utf8.DecodeRune(data[begin:])
		begin += size
	}
	return slices.Concat(data[:begin], bytes.Replace(data[begin:], []byte(f.Name), []byte(name), 1))
}

// Values returns the values of a scalar field or of a list of scalars, and name=value for each entry of a
// mapping of scalars.
func (f Field) Values() ([]string, error) {
	wrong := fmt.Errorf("field %q at %s must be a value, a list of values or a mapping of values", f.Name, f.Position)
	var values []string
	add := func(prefix string, n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return wrong
		}
		if n.Tag == "!!null" {
			return fmt.Errorf("field %q at %s has no value", f.Name, f.Position)
		}
		values = append(values, prefix+n.Value)
		return nil
	}
	switch f.node.Kind {
	case yaml.ScalarNode:
		err := add("", f.node)
		return values, err
	case yaml.SequenceNode:
		for _, n := range f.node.Content {
			if err := add("", n); err != nil {
				return nil, err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(f.node.Content); i += 2 {
			if err := add(f.node.Content[i].Value+"=", f.node.Content[i+1]); err != nil {
				return nil, err
			}
		}
	default:
		return nil, wrong
	}
	return values, nil
}

// parse returns the top node of the only document, or nil for an empty file.
func parse(name string, data []byte) (*yaml.Node, error) {
	var document, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%d: more than one document in the file", name, second.Line)
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

type decoder struct {
	file string
	errs []error
}

func (d *decoder) errorf(n *yaml.Node, format string, args ...any) {
	d.errs = append(d.errs, fmt.Errorf("%s at %s:%d", fmt.Sprintf(format, args...), d.file, n.Line))
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value decodes n into v; path names v in errors.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Tag == "!!null" {
		return
	}
	switch pointer := reflect.PointerTo(v.Type()); {
	case n.Kind == yaml.ScalarNode && pointer.Implements(textUnmarshaler):
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			d.errorf(n, "field %q: %v", path, err)
		}
		return
	case pointer.Implements(unmarshaler):
		d.viaJSON(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, v.Elem(), path)
	case reflect.Struct:
		d.mapping(n, path, func(key, val *yaml.Node) { d.field(key, val, v, path) })
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		d.mapping(n, path, func(key, val *yaml.Node) {
			elem := reflect.New(v.Type().Elem()).Elem()
			d.value(val, elem, join(path, key.Value))
			v.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), elem)
		})
	case reflect.Slice:
		d.sequence(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.errorf(n, "field %q must be a list", path)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.errorf(n, "field %q must be a %s", path, v.Type())
		return
	}
	if err := n.Decode(v.Addr().Interface()); err != nil {
		d.errorf(n, "field %q must be a %s, not %q", path, v.Type(), n.Value)
	}
}

// viaJSON decodes types that support only JSON.
func (d *decoder) viaJSON(n *yaml.Node, v reflect.Value, path string) {
	var raw any
	if err := n.Decode(&raw); err != nil {
		d.errorf(n, "field %q: %v", path, err)
		return
	}
	data, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(data, v.Addr().Interface())
	}
	switch {
	case err == nil:
	case n.Kind == yaml.ScalarNode:
		d.errorf(n, "field %q: %q is not a valid value: %v", path, n.Value, err)
	default:
		d.errorf(n, "field %q: %v", path, err)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
