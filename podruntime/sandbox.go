// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/hostfiles"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// sandboxTimeout bounds the creation of a sandbox, whose network setup may be slow.
const sandboxTimeout = 2 * callTimeout

// runSandbox makes the sandbox of the pod.
func (j job) runSandbox(ctx context.Context, a plan.Action) plan.Outcome {
	ctx, cancel := context.WithTimeout(ctx, sandboxTimeout)
	defer cancel()
	id, err := j.newSandbox(ctx, a.Attempt)
	if err != nil {
		message := "Failed to create pod sandbox: " + err.Error()
		if !errors.Is(ctx.Err(), context.Canceled) { // otherwise, the pod was deleted in the meantime
			j.exec.events.recordPod(j.pod, corev1.EventTypeWarning, reasonSandbox, message)
		}
		return plan.Outcome{Reason: reasonSandbox, Message: message}
	}
	return plan.Outcome{ID: id}
}

func (j job) newSandbox(ctx context.Context, attempt uint32) (string, error) {
	config, err := j.exec.sandboxes.newConfig(j.pod, attempt)
	if err != nil {
		return "", err
	}
	handler, err := j.exec.sandboxes.findHandler(ctx, j.pod)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return "", fmt.Errorf("make the directory of its logs: %w", err)
	}
	if err := j.exec.cgroups.makeGroup(j.pod); err != nil {
		return "", err
	}
	return j.exec.runtime.RunPodSandbox(ctx, config, handler)
}

// sandboxes configures the sandboxes of pods.
type sandboxes struct {
	settings criconfig.Settings
	files    *hostfiles.Files
	volumes  *volumes.Volumes
	// namesVolumes means that sandboxes get the names of their volumes in memory.
	namesVolumes bool
	// handler returns the handler of a RuntimeClass; nil refuses pods that name a class.
	handler func(ctx context.Context, class string) (string, error)
}

// newConfig returns the runtime's configuration of a new sandbox, and records events about the settings of the pod.
func (s *sandboxes) newConfig(pod *corev1.Pod, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	return s.makeConfig(pod, attempt, s.files)
}

// config returns the configuration of an existing sandbox, which requests for containers include.
func (s *sandboxes) config(pod *corev1.Pod, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	return s.makeConfig(pod, attempt, s.files.Quietly())
}

func (s *sandboxes) makeConfig(pod *corev1.Pod, attempt uint32, files *hostfiles.Files) (*runtimeapi.PodSandboxConfig, error) {
	hostname, err := files.Hostname(pod)
	if err != nil {
		return nil, err
	}
	dns, err := files.DNS(pod)
	if err != nil {
		return nil, err
	}
	config, err := s.settings.Sandbox(pod, attempt, criconfig.Network{Hostname: hostname, DNS: dns})
	if err != nil || !s.namesVolumes {
		return config, err
	}
	return config, s.nameVolumes(pod, config)
}

// nameVolumes sets the annotation with the volumes that the sandbox may provide itself. It removes the pod's own annotation of that name.
func (s *sandboxes) nameVolumes(pod *corev1.Pod, config *runtimeapi.PodSandboxConfig) error {
	delete(config.Annotations, SandboxVolumesAnnotation)
	dirs := s.volumes.InSandbox(pod)
	if len(dirs) == 0 {
		return nil
	}
	data, err := json.Marshal(dirs)
	if err != nil {
		return err
	}
	if config.Annotations == nil {
		config.Annotations = map[string]string{}
	}
	config.Annotations[SandboxVolumesAnnotation] = string(data)
	return nil
}

// errNoHandlers refuses pods with a runtime class if no handlers are known.
var errNoHandlers = errors.New("runtime classes are not supported by this node")

// findHandler returns the runtime handler of the class of the pod.
func (s *sandboxes) findHandler(ctx context.Context, pod *corev1.Pod) (string, error) {
	class := pod.Spec.RuntimeClassName
	switch {
	case class == nil || *class == "":
		return "", nil
	case s.handler == nil:
		return "", fmt.Errorf("RuntimeClass %q: %w", *class, errNoHandlers)
	}
	return s.handler(ctx, *class)
}

// stopSandbox stops the sandbox of the pod: its network and all its processes.
func (j job) stopSandbox(ctx context.Context, a plan.Action) plan.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return j.removalOutcome(a, reasonStop, j.exec.runtime.StopPodSandbox(ctx, a.ID))
}

// removeSandbox removes a sandbox. It first removes the logs of a deleted pod: without the sandbox, they would not be found after a crash, because
// other programs have logs in the same directory.
func (j job) removeSandbox(ctx context.Context, a plan.Action) plan.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if j.deleted && !j.exec.keepLogs {
		if err := os.RemoveAll(j.exec.settings.LogDirectory(j.pod)); err != nil {
			return plan.Outcome{Reason: reasonRemove, Message: err.Error()}
		}
	}
	return j.removalOutcome(a, reasonRemove, j.exec.runtime.RemovePodSandbox(ctx, a.ID))
}
