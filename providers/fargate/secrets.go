// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// maxSecret is how many bytes a secret of Secrets Manager has at most.
const maxSecret = 64 << 10

// secret is the environment of a container in Secrets Manager.
type secret struct {
	name    string
	cluster string // of Kubernetes, for the tag
	text    string // a JSON object, of which a task definition names the keys
}

// Format implements fmt.Formatter: whatever prints a secret shows its name, and no value.
func (s secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.name) }

// secretOf returns the secret of a container, and false for one that has nothing secret. All of its variables are in it if one comes from
// a Secret, as each may contain others. The name is made of the content with a key that only Secrets Manager has, so that pods with the
// same content share one secret and one definition, and nobody who sees the name can try values.
func secretOf(key []byte, cluster string, c, resolved *corev1.Container, at *field.Path) (secret, bool, error) {
	if !hasSecrets(c) {
		return secret{}, false, nil
	}
	values := map[string]string{}
	for _, e := range resolved.Env {
		values[e.Name] = e.Value
	}
	text, err := json.Marshal(values)
	if err != nil {
		return secret{}, false, fmt.Errorf("%s: %w", at.Child("env"), err)
	}
	if len(text) > maxSecret {
		return secret{}, false, errdefs.InvalidInputf("%s: %d bytes with secrets: Secrets Manager keeps %d at most", at.Child("env"), len(text), maxSecret)
	}
	if err := plainCommand(c, at); err != nil {
		return secret{}, false, err
	}
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(cluster + "\n"))
	sum.Write(text)
	name := "vk-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:16]))
	return secret{name: name, cluster: cluster, text: string(text)}, true, nil
}

// hasSecrets reports whether a variable of a container comes from a Secret.
func hasSecrets(c *corev1.Container) bool {
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			return true
		}
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			return true
		}
	}
	return false
}

var reference = regexp.MustCompile(`\$\$|\$\(([^)]*)\)`)

// plainCommand refuses a command that refers to what may be secret: it would be in the task definition.
func plainCommand(c *corev1.Container, at *field.Path) error {
	literal := map[string]bool{}
	for _, e := range c.Env {
		literal[e.Name] = e.ValueFrom == nil && !strings.Contains(e.Value, "$(")
	}
	for list, words := range map[string][]string{"command": c.Command, "args": c.Args} {
		for i, word := range words {
			for _, m := range reference.FindAllStringSubmatch(word, -1) {
				if m[0] != "$$" && !literal[m[1]] {
					return errdefs.InvalidInputf("%s: $(%s) may be a secret, and whoever may read task definitions reads commands: let the program read its environment", at.Child(list).Index(i), m[1])
				}
			}
		}
	}
	return nil
}
