// SPDX-License-Identifier: Apache-2.0

// Package image pulls images before containers start, with the pull policy, the credentials of the pod, and the delays, events and reasons of a
// kubelet. It also removes unused images.
//
// The guarantee: after a failed pull for a pod, the next request waits for a delay that grows from 10 seconds to 5 minutes. Images are only pulled if
// the policy allows it. An unresponsive registry does not block other registries. A pod may use a private image on the machine only with the
// credentials of its pull, even after a restart.
//
// Note: Ensure does not wait for the delay. It fails at once, and its error has the time until the next attempt.
package image

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
)

// Reasons why a container waits for its image.
const (
	ErrPull      = "ErrImagePull"
	BackOff      = "ImagePullBackOff"
	ErrNeverPull = "ErrImageNeverPull"
	ErrInspect   = "ImageInspectError"
	ErrName      = "InvalidImageName"
)

const (
	firstDelay = 10 * time.Second
	lastDelay  = 5 * time.Minute
	// inspectAgain is the pause before the next check for an image.
	inspectAgain = 10 * time.Second
	// parallel is the number of concurrent pulls from one registry.
	parallel = 5
)

// Config is the configuration of a Puller.
type Config struct {
	Images cri.ImageManagerService
	// Credentials returns the credentials of the pod. Nil means that there are none.
	Credentials func(ctx context.Context, pod *corev1.Pod) ([]podinputs.RegistryCredential, error)
	// Dir is the directory for durable records: the credentials of pulls. "" keeps them in memory.
	Dir string
	// Event records an event about a container of the pod.
	Event func(pod *corev1.Pod, container, eventType, reason, message string)
}

// Puller pulls missing images. It is safe for concurrent use.
type Puller struct {
	cfg     Config
	delays  *flowcontrol.Backoff
	last    messages
	pulling gates
	pulls   *pulls
}

// New returns a Puller with the records of an earlier Puller in the same directory.
func New(cfg Config) (*Puller, error) {
	known, err := openPulls(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("read which images were pulled: %w", err)
	}
	return &Puller{cfg: cfg, delays: flowcontrol.NewBackOff(firstDelay, lastDelay), pulls: known}, nil
}

// Request is a container's request for an image.
type Request struct {
	Pod       *corev1.Pod
	Container string
	Image     string
	Policy    corev1.PullPolicy
	Sandbox   *runtimeapi.PodSandboxConfig
	// Handler is the runtime handler of the pod.
	Handler string
}

// Image is an image on the machine.
type Image struct {
	// Ref is the reference for new containers.
	Ref  string
	User criconfig.User
}

// Error is the reason why an image is missing.
type Error struct {
	Reason, Message string
	// RetryAfter is the time until the next attempt.
	RetryAfter time.Duration
}

// Error returns reason and message.
func (e *Error) Error() string { return e.Reason + ": " + e.Message }
