// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// Nomad interpolates three kinds of text, each by rules of its own. What a pod says must reach its containers as it is, so each is
// written such that nothing of it can be taken for an expression.

// literal writes a text for the configuration of a driver, which Nomad reads as a template of HCL: its two signs become
// strings of HCL, so that no sequence of them is left. So does a carriage return: after one without a newline HCL reads no expressions.
func literal(text string) string { return hcl.Replace(text) }

var hcl = strings.NewReplacer("$", `${"\u0024"}`, "%", `${"\u0025"}`, "\r", `${"\u000d"}`)

// dollar is a key of a task's metadata whose value is a dollar.
const dollar = "vkd"

// variable writes the value of an environment variable, in which Nomad replaces ${NAME} in one pass.
func variable(value string) string {
	return strings.ReplaceAll(value, "${", "${NOMAD_META_"+dollar+"}{")
}

// template writes a file's content as a template that has no text of the content in it.
func template(data []byte) string {
	return `{{ base64Decode "` + base64.StdEncoding.EncodeToString(data) + `" }}`
}

// itemTemplate is a template that writes an item of a Variable, which has base64.
func itemTemplate(path, item string) string {
	return fmt.Sprintf(`{{ with nomadVar %q }}{{ base64Decode .%s.Value }}{{ end }}`, path, item)
}

// envName is a name of a variable that can be in a file of variables.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// envLine writes a variable for a file of variables. A name that cannot be in one is an error.
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

// quote writes an argument of a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
