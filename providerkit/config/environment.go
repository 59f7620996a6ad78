// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// environment sets fields from variables.
type environment struct {
	prefix  string
	renamed map[string]string // the current names of top-level fields by their old names
	lookup  func(string) (string, bool)
}

// apply sets the fields of the struct that config points at, and joins all errors.
func (e environment) apply(config any) error {
	_, err := e.fields(reflect.ValueOf(config).Elem(), "")
	return err
}

// fields sets the fields of the struct v from their variables, and reports whether any variable was set.
func (e environment) fields(v reflect.Value, path string) (found bool, err error) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		var isSet bool
		var fieldErr error
		switch {
		case f.Type.Kind() == reflect.Struct && (f.Anonymous && name == "" || strings.Contains(options, "inline")):
			isSet, fieldErr = e.fields(v.Field(i), path)
		case !f.IsExported() || name == "" || name == "-" || path == "" && (name == "apiVersion" || name == "kind"):
			continue
		case path != "":
			isSet, fieldErr = e.field(v.Field(i), path+"."+name, f.Tag.Get("env"))
		default:
			isSet, fieldErr = e.field(v.Field(i), name, f.Tag.Get("env"))
		}
		found, err = found || isSet, errors.Join(err, fieldErr)
	}
	return found, err
}

// maxDepth bounds the search in structs that do not exist yet: a type may contain itself.
const maxDepth = 8

// field sets v, the field at path, from its variable, or the fields inside v from theirs.
func (e environment) field(v reflect.Value, path, names string) (found bool, err error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() && strings.Count(path, ".") >= maxDepth {
			return false, nil
		}
		fresh := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem())
		}
		if found, err = e.field(fresh.Elem(), path, names); found {
			v.Set(fresh)
		}
		return found, err
	}
	_, isText := v.Addr().Interface().(encoding.TextUnmarshaler)
	_, isJSON := v.Addr().Interface().(json.Unmarshaler)
	if v.Kind() == reflect.Struct && !isText && !isJSON {
		return e.fields(v, path)
	}
	for _, name := range e.names(path, names) {
		if value, _ := e.lookup(name); value != "" {
			if e.isOld(name, path) {
				log.G(context.Background()).Warnf("The environment variable %s is called %s now: rename it", name, e.names(path, "")[0])
			}
			if err := parse(v, value); err != nil {
				return true, fmt.Errorf("environment variable %s, for the field %q: %w", name, path, err)
			}
			return true, nil
		}
	}
	return false, nil
}

// names returns the variables for a field. The first variable with a value counts.
func (e environment) names(path, tag string) (names []string) {
	if e.prefix != "" {
		names = append(names, e.prefix+"_"+upperSnake(path))
	}
	for name := range strings.SplitSeq(tag, ",") {
		if name != "" {
			names = append(names, name)
		}
	}
	for _, old := range slices.Sorted(maps.Keys(e.renamed)) {
		if e.prefix != "" && e.renamed[old] == path {
			names = append(names, e.prefix+"_"+upperSnake(old))
		}
	}
	return names
}

// isOld reports whether a variable belongs to an old name of the field at path.
func (e environment) isOld(name, path string) bool {
	for old, now := range e.renamed {
		if now == path && name == e.prefix+"_"+upperSnake(old) {
			return true
		}
	}
	return false
}

// upperSnake writes defaults.runFor as DEFAULTS_RUN_FOR, clusterDNS as CLUSTER_DNS and ephemeral-storage as EPHEMERAL_STORAGE.
func upperSnake(path string) string {
	var out strings.Builder
	letters := []rune(path)
	for i, r := range letters {
		if r == '.' || r == '-' {
			out.WriteRune('_')
			continue
		}
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) && letters[i-1] != '.' {
			out.WriteRune('_')
		}
		out.WriteRune(unicode.ToUpper(r))
	}
	return out.String()
}

// parse sets v to the value of text.
func parse(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	if u, ok := v.Addr().Interface().(json.Unmarshaler); ok {
		quoted, err := json.Marshal(text)
		if err != nil {
			return err
		}
		return u.UnmarshalJSON(quoted)
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		var b bool
		if b, err = strconv.ParseBool(text); err != nil {
			return errors.New("want true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var n int64
		if n, err = strconv.ParseInt(text, 10, v.Type().Bits()); err != nil {
			return errors.New("want a whole number")
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var n uint64
		if n, err = strconv.ParseUint(text, 10, v.Type().Bits()); err != nil {
			return errors.New("want a whole number, 0 or more")
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		var n float64
		if n, err = strconv.ParseFloat(text, v.Type().Bits()); err != nil {
			return errors.New("want a number")
		}
		v.SetFloat(n)
	case reflect.Slice:
		return parseList(v, text)
	default:
		return errors.New("it is set by the file alone: unset the variable")
	}
	return nil
}

// parseList sets v to the comma-separated values in text.
func parseList(v reflect.Value, text string) error {
	if v.Type().Elem().Kind() == reflect.Struct {
		return errors.New("it is set by the file alone: unset the variable")
	}
	values := strings.Split(text, ",")
	list := reflect.MakeSlice(v.Type(), len(values), len(values))
	for i, value := range values {
		if err := parse(list.Index(i), strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("value %d of the list: %w", i+1, err)
		}
	}
	v.Set(list)
	return nil
}
