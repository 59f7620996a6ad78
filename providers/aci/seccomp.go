// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Seccomp are the profiles that containers may have. ACI gets what is in the file, with each group.
type Seccomp struct {
	// Directory has the files that localhostProfile names. Default: pods can name none.
	Directory string `json:"directory,omitempty"`
	// RuntimeDefault is the file for pods that ask for the default of their runtime: ACI does not say whether it has one. Default: they are refused.
	RuntimeDefault string `json:"runtimeDefault,omitempty"`
}

func (s Seccomp) isSet() bool { return s.Directory != "" || s.RuntimeDefault != "" }

// profile is what ACI takes of a profile; "" is none.
func (s Seccomp) profile(p *corev1.SeccompProfile, at *field.Path) (string, error) {
	var file string
	switch {
	case p == nil || p.Type == corev1.SeccompProfileTypeUnconfined:
		return "", nil
	case p.Type == corev1.SeccompProfileTypeRuntimeDefault:
		if file = s.RuntimeDefault; file == "" {
			return "", errdefs.InvalidInputf("%s: this node has no file for it: name seccomp.runtimeDefault in its configuration", at.Child("type"))
		}
	case p.Type == corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil && filepath.IsLocal(*p.LocalhostProfile):
		if s.Directory == "" {
			return "", errdefs.InvalidInputf("%s: this node has no profiles: name seccomp.directory in its configuration", at.Child("localhostProfile"))
		}
		file = filepath.Join(s.Directory, *p.LocalhostProfile)
	default:
		return "", errdefs.InvalidInputf("%s: %q: want RuntimeDefault, Unconfined, or Localhost with a path in the directory of this node", at.Child("type"), p.Type)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", errdefs.InvalidInputf("%s: the profile cannot be read: %v", at, err)
	}
	if !json.Valid(data) {
		return "", errdefs.InvalidInputf("%s: %s is no JSON", at, file)
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// profileOf is that of a container, else that of its pod.
func (s Seccomp) profileOf(pod *corev1.Pod, c *corev1.Container, at *field.Path) (string, error) {
	if c.SecurityContext != nil && c.SecurityContext.SeccompProfile != nil {
		return s.profile(c.SecurityContext.SeccompProfile, at.Child("securityContext", "seccompProfile"))
	}
	if pod.Spec.SecurityContext != nil {
		return s.profile(pod.Spec.SecurityContext.SeccompProfile, field.NewPath("spec", "securityContext", "seccompProfile"))
	}
	return "", nil
}
