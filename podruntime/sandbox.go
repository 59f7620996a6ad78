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
)

// sandboxTimeout is the longest time for a sandbox: networks are slow at times.
const sandboxTimeout = 2 * callTimeout

// runSandbox makes the namespaces of the pod.
func (j job) runSandbox(ctx context.Context, a plan.Action) plan.Outcome {
	ctx, cancel := context.WithTimeout(ctx, sandboxTimeout)
	defer cancel()
	id, err := j.newSandbox(ctx, a.Attempt)
	if err != nil {
		message := "Failed to create pod sandbox: " + err.Error()
		if !errors.Is(ctx.Err(), context.Canceled) { // else the pod was deleted meanwhile
			j.r.podEvent(j.pod, corev1.EventTypeWarning, reasonSandbox, message)
		}
		return plan.Outcome{Reason: reasonSandbox, Message: message}
	}
	return plan.Outcome{ID: id}
}

func (j job) newSandbox(ctx context.Context, attempt uint32) (string, error) {
	config, err := j.r.sandboxConfig(j.pod, attempt, j.r.files)
	if err != nil {
		return "", err
	}
	handler, err := j.r.runtimeHandler(ctx, j.pod)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return "", fmt.Errorf("make the directory of its logs: %w", err)
	}
	if err := j.r.cgroups.makeGroup(j.pod); err != nil {
		return "", err
	}
	return j.r.cfg.Runtime.RunPodSandbox(ctx, config, handler)
}

// sandboxConfig returns the runtime's configuration of a pod. Only the maker of the sandbox lets files record
// events about it: its containers come with the same configuration.
func (r *Runtime) sandboxConfig(pod *corev1.Pod, attempt uint32, files *hostfiles.Files) (*runtimeapi.PodSandboxConfig, error) {
	hostname, err := files.Hostname(pod)
	if err != nil {
		return nil, err
	}
	dns, err := files.DNS(pod)
	if err != nil {
		return nil, err
	}
	config, err := r.settings.Sandbox(pod, attempt, criconfig.Network{Hostname: hostname, DNS: dns})
	if err != nil || !r.cfg.SandboxVolumes {
		return config, err
	}
	return config, r.nameVolumes(pod, config)
}

// nameVolumes names the volumes that the sandbox may hold by itself to the runtime, and drops the pod's own text
// in that place.
func (r *Runtime) nameVolumes(pod *corev1.Pod, config *runtimeapi.PodSandboxConfig) error {
	delete(config.Annotations, SandboxVolumesAnnotation)
	dirs := r.volumes.InSandbox(pod)
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

// runtimeHandler returns the runtime handler of the class of the pod.
func (r *Runtime) runtimeHandler(ctx context.Context, pod *corev1.Pod) (string, error) {
	class := pod.Spec.RuntimeClassName
	switch {
	case class == nil || *class == "":
		return "", nil
	case r.cfg.RuntimeHandler == nil:
		return "", fmt.Errorf("RuntimeClass %q: %w", *class, errNoHandlers)
	}
	return r.cfg.RuntimeHandler(ctx, *class)
}

// stopSandbox ends the network of the pod, and all its processes.
func (j job) stopSandbox(ctx context.Context, a plan.Action) plan.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return j.removalOutcome(a, reasonStop, j.r.cfg.Runtime.StopPodSandbox(ctx, a.ID))
}

// removeSandbox removes a sandbox. It first removes the logs of a deleted pod: without a sandbox, no process
// would find them after a crash, and other programs have logs in the same place.
func (j job) removeSandbox(ctx context.Context, a plan.Action) plan.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if j.deleted && !j.r.cfg.KeepLogs {
		if err := os.RemoveAll(j.r.settings.LogDirectory(j.pod)); err != nil {
			return plan.Outcome{Reason: reasonRemove, Message: err.Error()}
		}
	}
	return j.removalOutcome(a, reasonRemove, j.r.cfg.Runtime.RemovePodSandbox(ctx, a.ID))
}

// removeFiles removes the files of a gone pod.
func (r *Runtime) removeFiles(pod *corev1.Pod) error {
	err := errors.Join(r.volumes.Remove(pod.UID), os.RemoveAll(r.messageDir(pod.UID)), r.cgroups.removeGroup(pod.UID))
	if r.cfg.KeepLogs {
		return err
	}
	return errors.Join(err, os.RemoveAll(r.settings.LogDirectory(pod)))
}
