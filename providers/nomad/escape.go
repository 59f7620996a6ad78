// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// Nomad interpolates three kinds of text, each by its own rules. The text of a pod must reach its containers
// unchanged, so each kind is written in a form without expressions.

// literal escapes a text for the configuration of a driver, which Nomad reads as an HCL template. It writes $ and % as HCL strings, so
// that the text has no HCL sequence. It does the same with a carriage return: after one without a newline, HCL reads no expressions.
func literal(text string) string { return hcl.Replace(text) }

var hcl = strings.NewReplacer("$", `${"\u0024"}`, "%", `${"\u0025"}`, "\r", `${"\u000d"}`)

// dollar is a metadata key of a task with a dollar as its value.
const dollar = "vkd"

// variable escapes the value of an environment variable, in which Nomad replaces ${NAME} in one pass.
func variable(value string) string {
	return strings.ReplaceAll(value, "${", "${NOMAD_META_"+dollar+"}{")
}

// template returns a template for the content of a file. It contains no plain text of the content.
func template(data []byte) string {
	return `{{ base64Decode "` + base64.StdEncoding.EncodeToString(data) + `" }}`
}

// itemTemplate returns a template for an item of a Variable, which is in base64.
func itemTemplate(path, item string) string {
	return fmt.Sprintf(`{{ with nomadVar %q }}{{ base64Decode .%s.Value }}{{ end }}`, path, item)
}

// envName matches the names that a file of variables can contain.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// envLine returns the line of a variable for a file of variables. An unsuitable name is an error.
func envLine(name, value string) (string, error) {
	if !envName.MatchString(name) {
		return "", fmt.Errorf("environment variable %q: beside Secrets, Nomad takes names of letters, digits, _ and . only", name)
	}
	var line strings.Builder
	line.WriteString(name + `="`)
	for i := range len(value) {
		switch b := value[i]; {
		case b == '"' || b == '\\':
			line.WriteByte('\\')
			line.WriteByte(b)
		case b < ' ':
			fmt.Fprintf(&line, `\u%04x`, b)
		default:
			line.WriteByte(b)
		}
	}
	line.WriteString("\"\n")
	return line.String(), nil
}
