// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// fieldsFile has the parameters of each operation, with their source and date.
//
//go:embed fields.json
var fieldsFile []byte

// table is the parsed fieldsFile: the types of parameters by operation and name. N stands for a number from 1, and ! marks a
// required parameter. Several names separated by | are the values of an enumeration.
var table = sync.OnceValue(func() map[string]map[string]string {
	var file struct{ Operations map[string]map[string]string }
	if err := json.Unmarshal(fieldsFile, &file); err != nil {
		panic(err) // the file is built in
	}
	return file.Operations
})

// version is the version of the API.
const version = "2016-11-15"

// Check returns the code and the message with which EC2 would refuse the parameters of an operation, or "".
func Check(operation string, form url.Values) (code, message string) {
	want, known := table()[operation]
	if !known || form.Get("Version") != version {
		return "InvalidAction", fmt.Sprintf("The action %s is not valid for this web service.", operation)
	}
	had := map[string]bool{}
	for name, values := range form {
		if name == "Action" || name == "Version" {
			continue
		}
		parts := strings.Split(name, ".")
		for i, p := range parts {
			if n, err := strconv.Atoi(p); err == nil && n > 0 {
				parts[i] = "N"
			}
		}
		plain := strings.Join(parts, ".")
		kind := want[plain]
		if kind == "" {
			plain += "!"
			kind = want[plain]
		}
		had[plain] = true
		switch {
		case kind == "":
			return "UnknownParameter", fmt.Sprintf("The parameter %s is not recognized", name)
		case len(values) != 1 || !isOfType(kind, values[0]):
			return "InvalidParameterValue", fmt.Sprintf("Value (%s) for parameter %s is invalid.", strings.Join(values, ","), name)
		}
	}
	for name := range want {
		if strings.HasSuffix(name, "!") && !had[name] {
			return "MissingParameter", "The request must contain the parameter " + strings.TrimSuffix(name, "!")
		}
	}
	return "", ""
}

// isOfType reports whether a value is of a type of the table.
func isOfType(kind, value string) bool {
	switch kind {
	case "string":
		return true
	case "integer":
		_, err := strconv.ParseInt(value, 10, 64)
		return err == nil
	case "boolean":
		return value == "true" || value == "false"
	}
	return slices.Contains(strings.Split(kind, "|"), value)
}
