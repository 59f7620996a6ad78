// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// fieldsFile has the description of requests, with its source and date.
//
//go:embed fields.json
var fieldsFile []byte

// operation is a request of the description.
type operation struct {
	Method, Path string
	Query        []string
}

// description is the parsed fieldsFile. A type is an object of fields, an object with any names (*), a list, an
// enumeration, or a word for a value. # is the prefix of the name of another type.
type description struct {
	Operations            map[string]operation
	Types                 map[string]any
	Sysctls, Capabilities []string
}

var described = sync.OnceValue(func() (d description) {
	if err := json.Unmarshal(fieldsFile, &d); err != nil {
		panic(err) // the file is built in
	}
	return d
})

// tokenPath is the path for token requests.
const tokenPath = "/identity/v1/oauth2/token"

// Operation returns the operation of a request, for a Front, or "".
func Operation(r *http.Request, _ []byte) string {
	if r.URL.Path == tokenPath {
		return "Token"
	}
	name, _ := match(r)
	return name
}

// match finds the operation of a request, and the values in its path.
func match(r *http.Request) (name string, values map[string]string) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	for name, o := range described().Operations {
		pattern := strings.Split(o.Path, "/")
		if o.Method != r.Method || len(pattern) != len(parts) {
			continue
		}
		values, same := map[string]string{}, true
		for i, p := range pattern {
			if !strings.HasPrefix(p, "{") {
				same = same && p == parts[i]
				continue
			}
			value, err := url.PathUnescape(parts[i])
			same = same && err == nil && value != ""
			values[strings.Trim(p, "{}")] = value
		}
		if same {
			return name, values
		}
	}
	return "", nil
}

// Check reports the problems for which the service would refuse the shape of a create: unknown or read-only
// fields, and fields of another type.
func Check(body []byte) error {
	var request any
	if err := json.Unmarshal(body, &request); err != nil {
		return fmt.Errorf("body: it is no JSON: %w", err)
	}
	return fits("#v1CreateWorkloadRequest", "", request)
}

func fits(want any, at string, value any) error {
	if value == nil {
		return nil
	}
	switch want := want.(type) {
	case string:
		if name, is := strings.CutPrefix(want, "#"); is {
			return fits(described().Types[name], at, value)
		}
		return isA(want, at, value)
	case []any:
		list, is := value.([]any)
		if !is {
			return fmt.Errorf("%s: want a list", at)
		}
		for i := range list {
			if err := fits(want[0], fmt.Sprintf("%s[%d]", at, i), list[i]); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if names, is := want["enum"].([]any); is {
			if !slices.Contains(names, value) {
				return fmt.Errorf("%s: %v: want one of %v", at, value, names)
			}
			return nil
		}
		o, is := value.(map[string]any)
		if !is {
			return fmt.Errorf("%s: want an object", at)
		}
		for _, name := range slices.Sorted(maps.Keys(o)) {
			field := want[name]
			if any, is := want["*"]; is {
				field = any
			}
			if field == nil || field == "read only" {
				return fmt.Errorf("%s.%s: there is no such field in a request", at, name)
			}
			if err := fits(field, at+"."+name, o[name]); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s: the description has a %T", at, want)
}

// isA reports whether a value is of a type of JSON.
func isA(kind, at string, value any) error {
	is := false
	switch v := value.(type) {
	case string:
		is = kind == "string"
	case bool:
		is = kind == "boolean"
	case float64:
		is = kind == "number" || kind == "integer" && v == float64(int32(v))
	}
	if !is {
		return fmt.Errorf("%s: %v: want a %s", at, value, kind)
	}
	return nil
}
