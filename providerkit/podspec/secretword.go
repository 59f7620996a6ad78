// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reference matches the references that Kubernetes expands in words of a command and in values of variables; $$
// is a dollar.
var reference = regexp.MustCompile(`\$\$|\$\(([^)]*)\)`)

// secretNames has the variables of an unexpanded container, and whether each has a part of a Secret.
type secretNames map[string]bool

// secretsOf returns the variables of a container. If the container takes all of a Secret, each variable without an entry in its spec counts as part of it.
func secretsOf(c, resolved *corev1.Container) secretNames {
	s := secretNames{}
	if slices.ContainsFunc(c.EnvFrom, func(from corev1.EnvFromSource) bool { return from.SecretRef != nil }) {
		for _, e := range resolved.Env {
			s[e.Name] = true
		}
	}
	for _, e := range c.Env { // a value may refer to earlier variables
		s[e.Name] = e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil || e.ValueFrom == nil && s.namedIn(e.Value)
	}
	return s
}

// namedIn reports whether a text names a variable with a part of a Secret.
func (s secretNames) namedIn(text string) bool {
	return slices.ContainsFunc(reference.FindAllStringSubmatch(text, -1), func(m []string) bool { return s[m[1]] })
}

// SecretVariables reports which variables of a container have a part of a Secret. The container is unexpanded, and resolved has its whole environment.
// If the container takes all of a Secret, each variable without an entry in its spec counts.
func SecretVariables(c, resolved *corev1.Container) map[string]bool { return secretsOf(c, resolved) }

// SecretWord returns the path of the first word of the command or args that names a variable with a part of a Secret, or nil. See
// SecretVariables for the containers; at is the path of c. It is for services that show commands to every reader of instances. A word such as $(date),
// which names no variable, is left to the shell.
func SecretWord(c, resolved *corev1.Container, at *field.Path) *field.Path {
	secrets := secretsOf(c, resolved)
	for i, word := range c.Command {
		if secrets.namedIn(word) {
			return at.Child("command").Index(i)
		}
	}
	for i, word := range c.Args {
		if secrets.namedIn(word) {
			return at.Child("args").Index(i)
		}
	}
	return nil
}
