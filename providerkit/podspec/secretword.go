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
type secretNames struct {
	known map[string]bool
	all   bool // a variable without an entry in the spec may come from a Secret
}

func secretsOf(c *corev1.Container) secretNames {
	s := secretNames{known: map[string]bool{}}
	for _, from := range c.EnvFrom {
		s.all = s.all || from.SecretRef != nil
	}
	for _, e := range c.Env { // a value may refer to earlier variables
		s.known[e.Name] = e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil || e.ValueFrom == nil && s.namedIn(e.Value)
	}
	return s
}

// has reports whether a variable has a part of a Secret.
func (s secretNames) has(name string) bool {
	is, known := s.known[name]
	return is || s.all && !known
}

// namedIn reports whether a text names a variable with a part of a Secret.
func (s secretNames) namedIn(text string) bool {
	return slices.ContainsFunc(reference.FindAllStringSubmatch(text, -1), func(m []string) bool { return m[1] != "" && s.has(m[1]) })
}

// SecretVariables returns the names of the variables of a container with a part of a Secret. The container is
// unexpanded, and resolved has its whole environment. If the container takes all of a Secret, each variable without
// an entry in its spec counts.
func SecretVariables(c, resolved *corev1.Container) map[string]bool {
	secrets, out := secretsOf(c), map[string]bool{}
	for _, e := range resolved.Env {
		out[e.Name] = secrets.has(e.Name)
	}
	return out
}

// SecretWord returns the path of the first word of the command or args that names a variable with a part of a Secret, or nil. The container
// is unexpanded, and at is its path. It is for services that show commands to every reader of instances.
func SecretWord(c *corev1.Container, at *field.Path) *field.Path {
	secrets := secretsOf(c)
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
