// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// givenUIDs fills in the UIDs of pods from a backend that keeps none. It remembers which pod the backend received under a name. The rest of
// the controller identifies pods only by UID.
type givenUIDs struct {
	mu sync.Mutex
	of map[string]givenPod // guarded by mu; keyed by key
}

// givenPod is the pod that the backend last received under a name. before is the previous pod of the name, until CreatePod succeeds or the
// backend has no pod of the name: it has ended, but the backend may still show it.
type givenPod struct{ uid, before types.UID }

// unknownUID is the prefix of the made-up UID of a pod that only the backend has and that this process did not create.
const unknownUID = "unknown:"

// stampUID returns the backend's pod with a UID, if the backend keeps none. If no pod of the name was given, it uses the UID of api, which
// an earlier process may have created. api may be nil.
func (g *givenUIDs) stampUID(pod, api *corev1.Pod) *corev1.Pod {
	if pod == nil || pod.UID != "" && !isUnknown(pod) {
		return pod
	}
	g.mu.Lock()
	given, known := g.of[keyOf(pod)]
	g.mu.Unlock()
	stamped := *pod
	switch {
	case known && given.before != "" && lifecycle.Terminal(&pod.Status):
		stamped.UID = given.before
	case known:
		stamped.UID = given.uid
	case api != nil:
		stamped.UID = api.UID
	default:
		stamped.UID = types.UID(unknownUID + keyOf(pod))
	}
	return &stamped
}

// isUnknown reports whether the UID of the pod is made up and not from the API server.
func isUnknown(pod *corev1.Pod) bool { return strings.HasPrefix(string(pod.UID), unknownUID) }

// recordCreate records that CreatePod is being called for the pod.
func (g *givenUIDs) recordCreate(key string, uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if older := g.of[key].uid; older != uid {
		g.of[key] = givenPod{uid, older}
	}
}

// recordAccepted records that the backend has the pod.
func (g *givenUIDs) recordAccepted(key string, uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[key] = givenPod{uid: uid}
}

// supposeGiven assumes that the backend's pod has the UID, if the backend received no pod of the name.
func (g *givenUIDs) supposeGiven(key string, uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.of[key]; !known {
		g.of[key] = givenPod{uid: uid}
	}
}

// recordDenied records that the backend has no pod of the name.
func (g *givenUIDs) recordDenied(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if given, known := g.of[key]; known {
		g.of[key] = givenPod{uid: given.uid}
	}
}

// forgetName drops the record of a name that neither side has.
func (g *givenUIDs) forgetName(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, key)
}

// forgetAll drops all records: another process may have worked on the pods.
func (g *givenUIDs) forgetAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.of)
}
