// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// versionTime bounds the wait of a starting node for the runtime, which may be stopped.
const versionTime = 5 * time.Second

// runtimeInfo has the name and the abilities of the container runtime. It requests them once.
type runtimeInfo struct {
	runtime cri.RuntimeService

	mu        sync.Mutex
	name      string          // guarded by mu: the runtime's own name; "" before it is known
	recursive map[string]bool // guarded by mu: the handlers with support for recursive read-only mounts
}

// identifyRuntime returns the runtime's own name, the scheme of container IDs, and reads its abilities.
func (i *runtimeInfo) identifyRuntime(ctx context.Context) (string, error) {
	i.mu.Lock()
	name := i.name
	i.mu.Unlock()
	if name != "" {
		return name, nil
	}
	version, err := i.runtime.Version(ctx, "v1")
	if err != nil {
		return "", fmt.Errorf("ask the container runtime for its name: %w", err)
	}
	status, err := i.runtime.Status(ctx, false)
	if err != nil {
		return "", fmt.Errorf("read the abilities of the container runtime: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.name, i.recursive = version.RuntimeName, map[string]bool{}
	for _, h := range status.GetRuntimeHandlers() {
		if h.GetFeatures().GetRecursiveReadOnlyMounts() {
			i.recursive[h.GetName()] = true
		}
	}
	return i.name, nil
}

// recursiveReadOnly reports whether the runtime supports recursive read-only mounts for the pod.
func (i *runtimeInfo) recursiveReadOnly(pod *corev1.Pod) bool {
	if pod != nil && pod.Spec.RuntimeClassName != nil && *pod.Spec.RuntimeClassName != "" {
		return false // the handler of the class is not known here
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.recursive[""]
}

// readVersion returns the runtime in a kubelet's format, such as containerd://2.1.4, or "" if the runtime does not answer.
func (i *runtimeInfo) readVersion(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	version, err := i.runtime.Version(ctx, "v1")
	if err != nil {
		log.G(ctx).WithError(err).Info("the node does not say which container runtime it has: that does not answer yet")
		return ""
	}
	return version.GetRuntimeName() + "://" + version.GetRuntimeVersion()
}
