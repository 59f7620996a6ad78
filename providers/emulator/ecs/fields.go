// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// fieldsFile has the input of each operation, with its source and date.
//
//go:embed fields.json
var fieldsFile []byte

// table is the parsed fieldsFile. A field is an object of fields, a list with its item, or the name of a type
// with the minimum and maximum of its length or value. Several names separated by | are the values of an
// enumeration.
var table = sync.OnceValue(func() map[string]map[string]any {
	var file struct{ Operations map[string]map[string]any }
	if err := json.Unmarshal(fieldsFile, &file); err != nil {
		panic(err) // the file is built in
	}
	return file.Operations
})

// Check reports the problems for which the service would refuse the shape of a request: unknown or missing
// fields, and fields of another type.
func Check(operation string, body []byte) error {
	fields, ok := table()[operation]
	if !ok {
		return fmt.Errorf("there is no operation %s", operation)
	}
	var said any
	if err := json.Unmarshal(body, &said); err != nil {
		return fmt.Errorf("the body is no JSON: %w", err)
	}
	return checkValue(operation, fields, said)
}

// checkValue walks the table along a value.
func checkValue(at string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		return checkObject(at, want, got)
	case []any:
		list, ok := got.([]any)
		if !ok {
			return fmt.Errorf("%s: want a list", at)
		}
		for i := range list {
			if err := checkValue(at+"["+strconv.Itoa(i)+"]", want[0], list[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		return checkScalar(at, want, got)
	}
	return fmt.Errorf("%s: the table has a %T", at, want)
}

func checkObject(at string, want map[string]any, got any) error {
	fields, ok := got.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: want an object", at)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		inner := want[name]
		for _, other := range []string{name + "!", "*"} {
			if inner == nil {
				inner = want[other]
			}
		}
		if inner == nil {
			return fmt.Errorf("%s: there is no field %s", at, name)
		}
		if err := checkValue(at+"."+name, inner, fields[name]); err != nil {
			return err
		}
	}
	for name := range want {
		if required, is := strings.CutSuffix(name, "!"); is && fields[required] == nil {
			return fmt.Errorf("%s.%s: is missing", at, required)
		}
	}
	return nil
}

func checkScalar(at, want string, got any) error {
	if strings.Contains(want, "|") || !slices.Contains([]string{"string", "integer", "boolean", "blob"}, strings.Fields(want)[0]) {
		if s, ok := got.(string); !ok || !slices.Contains(strings.Split(want, "|"), s) {
			return fmt.Errorf("%s: want one of %s", at, want)
		}
		return nil
	}
	var n float64
	var ok bool
	switch words := strings.Fields(want); words[0] {
	case "boolean":
		_, ok = got.(bool)
	case "integer":
		n, ok = got.(float64)
		ok = ok && n == math.Trunc(n)
	default:
		var s string
		s, ok = got.(string)
		n = float64(len(s))
	}
	if !ok {
		return fmt.Errorf("%s: want %s", at, want)
	}
	for i, bound := range strings.Fields(want)[1:] {
		limit, err := strconv.ParseFloat(bound, 64)
		if err != nil || i == 0 && n < limit || i == 1 && n > limit {
			return fmt.Errorf("%s: want %s", at, want)
		}
	}
	return nil
}
