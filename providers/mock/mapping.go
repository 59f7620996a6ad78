// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// AnnotationPrefix is the prefix of every annotation for this provider.
const AnnotationPrefix = "mock.virtual-kubelet.io/"

// Annotations of a pod that take precedence over the defaults of the configuration. Durations have the format of
// Go, such as 1m30s.
const (
	AnnotationStartDelay   = AnnotationPrefix + "start-delay"
	AnnotationReadyDelay   = AnnotationPrefix + "ready-delay"
	AnnotationRunFor       = AnnotationPrefix + "run-for"
	AnnotationExitCode     = AnnotationPrefix + "exit-code"
	AnnotationRestartDelay = AnnotationPrefix + "restart-delay"
	AnnotationDeleteDelay  = AnnotationPrefix + "delete-delay"
	AnnotationStopExitCode = AnnotationPrefix + "stop-exit-code"
	AnnotationFailCreate   = AnnotationPrefix + "fail-create"
)

// DefaultRestartDelay is how long a container waits before it is restarted.
const DefaultRestartDelay = 10 * time.Second

// Behavior describes the life of a pod.
type Behavior struct {
	// StartDelay is how long containers are created before they run. Default 0.
	StartDelay metav1.Duration `json:"startDelay,omitempty"`
	// ReadyDelay is how long containers run before they are ready. Default 0.
	ReadyDelay metav1.Duration `json:"readyDelay,omitempty"`
	// RunFor is how long containers run before they exit. With 0, the default, containers run until the pod is
	// deleted. The restart policy of the pod decides what follows.
	RunFor metav1.Duration `json:"runFor,omitempty"`
	// ExitCode is the exit code of containers after RunFor. Default 0.
	ExitCode int32 `json:"exitCode,omitempty"`
	// RestartDelay is how long an exited container waits before its next run.
	// 0 means DefaultRestartDelay.
	RestartDelay metav1.Duration `json:"restartDelay,omitempty"`
	// DeleteDelay is how long containers take to stop when the pod is deleted. At the
	// end of the grace period they are killed, with exit code 137. Default 0.
	DeleteDelay metav1.Duration `json:"deleteDelay,omitempty"`
	// StopExitCode is the exit code of containers that stop because the pod is deleted. Default 0: the
	// containers handle the request to stop.
	StopExitCode int32 `json:"stopExitCode,omitempty"`
	// FailCreate makes every CreatePod fail. Default false.
	FailCreate bool `json:"failCreate,omitempty"`
}

// forPod returns b with the annotations of pod applied. If an annotation is invalid, forPod returns an error of
// the kind invalid-input with its name.
func (b Behavior) forPod(pod *corev1.Pod) (Behavior, error) {
	for name, d := range map[string]*metav1.Duration{
		AnnotationStartDelay:   &b.StartDelay,
		AnnotationReadyDelay:   &b.ReadyDelay,
		AnnotationRunFor:       &b.RunFor,
		AnnotationRestartDelay: &b.RestartDelay,
		AnnotationDeleteDelay:  &b.DeleteDelay,
	} {
		if text, ok := pod.Annotations[name]; ok {
			parsed, err := time.ParseDuration(text)
			if err != nil {
				return b, badAnnotation(name, text, "a duration such as 1m30s")
			}
			d.Duration = parsed
		}
	}
	for name, code := range map[string]*int32{AnnotationExitCode: &b.ExitCode, AnnotationStopExitCode: &b.StopExitCode} {
		if text, ok := pod.Annotations[name]; ok {
			parsed, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return b, badAnnotation(name, text, "a whole number")
			}
			*code = int32(parsed)
		}
	}
	if text, ok := pod.Annotations[AnnotationFailCreate]; ok {
		if text != "true" && text != "false" {
			return b, badAnnotation(AnnotationFailCreate, text, "true or false")
		}
		b.FailCreate = text == "true"
	}
	if err := b.checkValues(); err != nil {
		return b, errdefs.InvalidInputf("annotations of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return b, nil
}

// checkValues refuses negative durations and exit codes that no process has.
func (b Behavior) checkValues() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"start delay", b.StartDelay.Duration},
		{"ready delay", b.ReadyDelay.Duration},
		{"run time", b.RunFor.Duration},
		{"restart delay", b.RestartDelay.Duration},
		{"delete delay", b.DeleteDelay.Duration},
	} {
		if f.value < 0 {
			return fmt.Errorf("the %s is %s, want 0 or more", f.name, f.value)
		}
	}
	for _, code := range []int32{b.ExitCode, b.StopExitCode} {
		if code < 0 || code > 255 {
			return fmt.Errorf("the exit code is %d, want 0 to 255", code)
		}
	}
	return nil
}

// restartDelay is RestartDelay with its default.
func (b Behavior) restartDelay() time.Duration {
	if b.RestartDelay.Duration == 0 {
		return DefaultRestartDelay
	}
	return b.RestartDelay.Duration
}

func badAnnotation(name, value, want string) error {
	return errdefs.InvalidInputf("annotation %s is %q, want %s", name, value, want)
}
