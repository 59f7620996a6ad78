// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"io/fs"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// Grace returns the time that a stopping pod may take: the grace period of its deletion, else of its spec, else
// the 30 s that the API server sets.
func Grace(pod *corev1.Pod) time.Duration { return time.Duration(lifecycle.Grace(pod)) * time.Second }

// Mode converts the Unix mode bits of the API to a mode of package os.
func Mode(bits int32) fs.FileMode {
	mode := fs.FileMode(bits) & fs.ModePerm
	for bit, flag := range map[int32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// oneUser returns the user of all containers of the pod, or nil if they differ or the image determines the user.
func oneUser(pod *corev1.Pod) *int64 {
	var inPod, user *int64
	if s := pod.Spec.SecurityContext; s != nil {
		inPod = s.RunAsUser
	}
	var contexts []*corev1.SecurityContext
	for i := range pod.Spec.InitContainers {
		contexts = append(contexts, pod.Spec.InitContainers[i].SecurityContext)
	}
	for i := range pod.Spec.Containers {
		contexts = append(contexts, pod.Spec.Containers[i].SecurityContext)
	}
	for i := range pod.Spec.EphemeralContainers {
		contexts = append(contexts, pod.Spec.EphemeralContainers[i].SecurityContext)
	}
	for _, s := range contexts {
		own := inPod
		if s != nil && s.RunAsUser != nil {
			own = s.RunAsUser
		}
		if own == nil || user != nil && *user != *own {
			return nil
		}
		user = own
	}
	return user
}

// aggregate joins errors as a kubelet shows them: in brackets if there are several.
func aggregate(failed []error) error {
	switch len(failed) {
	case 0:
		return nil
	case 1:
		return failed[0]
	}
	texts := make([]string, 0, len(failed))
	for _, err := range failed {
		texts = append(texts, err.Error())
	}
	return &several{text: "[" + strings.Join(texts, ", ") + "]", errs: failed}
}

// several is more than one error.
type several struct {
	text string
	errs []error
}

func (s *several) Error() string   { return s.text }
func (s *several) Unwrap() []error { return s.errs }
