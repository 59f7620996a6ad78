// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reference matches the references that Kubernetes expands in words of a command and in values of variables; $$
// is a dollar.
var reference = regexp.MustCompile(`\$\$|\$\(([^)]*)\)`)

// SecretWord returns the path of the first word of the command or args that names a variable
// with a part of a Secret, or nil. The
// container is unexpanded, and at is its path. It serves services that show commands to every reader of
// instances.
func SecretWord(c *corev1.Container, at *field.Path) *field.Path {
	secret := map[string]bool{}
	all := false // a variable without an entry in the spec may come from a Secret
	for _, from := range c.EnvFrom {
		all = all || from.SecretRef != nil
	}
	names := func(text string) bool {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			is, known := secret[m[1]]
			if m[1] != "" && (is || all && !known) {
				return true
			}
		}
		return false
	}
	for _, e := range c.Env { // a value may refer to earlier variables
		secret[e.Name] = e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil || e.ValueFrom == nil && names(e.Value)
	}
	for i, word := range c.Command {
		if names(word) {
			return at.Child("command").Index(i)
		}
	}
	for i, word := range c.Args {
		if names(word) {
			return at.Child("args").Index(i)
		}
	}
	return nil
}
