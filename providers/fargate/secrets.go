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
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// maxSecret is how many bytes a secret of Secrets Manager has at most.
const maxSecret = 64 << 10

// secret is the environment of a container in Secrets Manager.
type secret struct {
	name    string
	cluster string // of Kubernetes, for the tag
	text    string // of variables, a JSON object of which a task definition names the keys
	own     bool   // of one pod: it may change, and ends with the pod
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
		if !utf8.ValidString(e.Value) {
			return secret{}, false, errdefs.InvalidInputf("%s: the value of %s is no UTF-8: Fargate gives variables as text", at.Child("env"), e.Name)
		}
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
	return secret{name: nameOf(key, cluster, string(text)), cluster: cluster, text: string(text)}, true, nil
}

// nameOf is the name of the secret with a text.
func nameOf(key []byte, cluster, text string) string {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(cluster + "\n" + text))
	return "vk-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:16]))
}

// ownName is the name of the secret of one pod.
func (m mapping) ownName(uid string) string {
	return "vk-pod-" + identity.Hash(m.owner.Cluster, m.owner.Node, uid)
}

// login is the secret of user name and password at the registry of an image, and false for one that the pod has none for: the image may be
// public.
func (m mapping) login(key []byte, r resolved, c *corev1.Container, at *field.Path) (secret, bool, error) {
	host := registry(c.Image)
	if m.config.RegistryCredentials[host] != "" || strings.Contains(host, ".dkr.ecr.") {
		return secret{}, false, nil
	}
	for _, credential := range r.logins {
		if !credential.Matches(c.Image) {
			continue
		}
		if credential.Username == "" || credential.Password == "" {
			return secret{}, false, errdefs.InvalidInputf("%s: the credentials for %s are a token: Fargate pulls with user name and password", at.Child("image"), host)
		}
		text, err := json.Marshal(map[string]string{"username": credential.Username, "password": credential.Password})
		if err != nil {
			return secret{}, false, err
		}
		return secret{name: nameOf(key, m.owner.Cluster, string(text)), cluster: m.owner.Cluster, text: string(text)}, true, nil
	}
	return secret{}, false, nil
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
