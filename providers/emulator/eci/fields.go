// SPDX-License-Identifier: Apache-2.0

package eci

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// fieldsFile has the fields of all requests, with their source and its date.
//
//go:embed fields.json
var fieldsFile []byte

// table is the parsed fieldsFile. A field is the name of its type, an object of fields, or a list of one of
// these.
var table = sync.OnceValue(func() map[string]any {
	var file struct{ Operations map[string]any }
	if err := json.Unmarshal(fieldsFile, &file); err != nil {
		panic(err) // the file is built in
	}
	return file.Operations
})

// required are the required fields of requests, by the documentation of the service of 2025-10-17.
var required = map[string][]string{
	"CreateContainerGroup":    {"RegionId", "ContainerGroupName", "Container.1.Image", "Container.1.Name"},
	"DeleteContainerGroup":    {"RegionId", "ContainerGroupId"},
	"RestartContainerGroup":   {"RegionId", "ContainerGroupId"},
	"DescribeContainerGroups": {"RegionId"}, "DescribeContainerGroupStatus": {"RegionId"},
	"DescribeContainerLog": {"RegionId", "ContainerGroupId", "ContainerName"},
	"ExecContainerCommand": {"RegionId", "ContainerGroupId", "ContainerName", "Command"},
}

// Check reports the problems for which the service would refuse the shape of a request: unknown or missing
// fields, fields of another type, and lists with gaps.
func Check(operation string, form url.Values) error {
	fields, ok := table()[operation]
	if !ok {
		return fmt.Errorf("there is no operation %s", operation)
	}
	for _, name := range required[operation] {
		if form.Get(name) == "" {
			return fmt.Errorf("MissingParameter: %s", name)
		}
	}
	for name, values := range form {
		if len(values) != 1 {
			return fmt.Errorf("InvalidParameter: %s is there %d times", name, len(values))
		}
		if err := checkField(fields, strings.Split(name, "."), values[0]); err != nil {
			return fmt.Errorf("InvalidParameter: %s: %w", name, err)
		}
		if err := noGap(form, strings.Split(name, ".")); err != nil {
			return err
		}
	}
	return nil
}

// checkField walks the table along the parts of a name.
func checkField(field any, parts []string, value string) error {
	switch f := field.(type) {
	case map[string]any:
		if len(parts) == 0 || f[parts[0]] == nil {
			return errors.New("there is no such field")
		}
		return checkField(f[parts[0]], parts[1:], value)
	case []any:
		if len(parts) == 0 {
			return errors.New("it is a list")
		}
		if n, err := strconv.Atoi(parts[0]); err != nil || n < 1 {
			return fmt.Errorf("%s is no number of a list", parts[0])
		}
		return checkField(f[0], parts[1:], value)
	case string:
		if len(parts) > 0 {
			return errors.New("there is no such field")
		}
		return isA(f, value)
	}
	return fmt.Errorf("the table has a %T", field)
}

// isA reports whether a value is of a type of the table.
func isA(kind, value string) (err error) {
	switch kind {
	case "number":
		_, err = strconv.ParseFloat(value, 64)
	case "boolean":
		if !slices.Contains([]string{"true", "false"}, value) {
			err = fmt.Errorf("%q is no boolean", value)
		}
	}
	return err
}

// noGap refuses a list with a number whose predecessor is missing.
func noGap(form url.Values, parts []string) error {
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 2 {
			continue
		}
		before := strings.Join(parts[:i], ".") + "." + strconv.Itoa(n-1)
		found := false
		for name := range form {
			found = found || name == before || strings.HasPrefix(name, before+".")
		}
		if !found {
			return fmt.Errorf("InvalidParameter: %s is there without %s", strings.Join(parts, "."), before)
		}
	}
	return nil
}
