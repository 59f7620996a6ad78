// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mapping calls each for every entry of n and refuses a repeated key.
func (d *decoder) mapping(n *yaml.Node, path string, each func(key, val *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		if path == "" {
			d.errorf(n, "the file must hold a mapping of fields")
		} else {
			d.errorf(n, "field %q must be a mapping", path)
		}
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			d.errorf(key, "field %q is given twice", join(path, key.Value))
			continue
		}
		seen[key.Value] = true
		each(key, n.Content[i+1])
	}
}

// field decodes one entry of a mapping into the field of the struct v with the same name.
func (d *decoder) field(key, val *yaml.Node, v reflect.Value, path string) {
	known := fields(v)
	if f, ok := known[key.Value]; ok {
		d.value(val, f, join(path, key.Value))
		return
	}
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	near := Nearest(key.Value, names)
	err := Unknown(join(path, key.Value), Position{d.file, key.Line}, near)
	if near == "" && len(names) > 0 {
		slices.Sort(names)
		err = fmt.Errorf("%w; known are: %s", err, strings.Join(names, ", "))
	}
	d.errs = append(d.errs, err)
}

// fields returns the settable fields of the struct v by their name in a file.
func fields(v reflect.Value) map[string]reflect.Value {
	known := map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" || strings.Contains(options, "inline"):
			for inner, fv := range fields(v.Field(i)) {
				known[inner] = fv
			}
		case name != "" && name != "-":
			known[name] = v.Field(i)
		}
	}
	return known
}
