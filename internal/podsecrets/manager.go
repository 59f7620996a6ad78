// SPDX-License-Identifier: Apache-2.0

package podsecrets

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// Config has the sources of a Manager.
type Config struct {
	// Accounts requests tokens. Nil means that there are none.
	Accounts corev1client.ServiceAccountsGetter
	// Secret reads a Secret by name. The error for a missing Secret satisfies apierrors.IsNotFound. After any other error, it is unknown whether the
	// Secret exists.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Over is called, possibly more than once, when a pod no longer gets secrets. It must return at once. It may be nil.
	Over func(types.UID)
	// Recorder records warnings about unusable Secrets.
	Recorder record.EventRecorder
	// Before is called before each request for a service account token. It may be nil.
	Before func(ctx context.Context, namespace, account string)
}

// Manager keeps the secrets of each pod. It is safe for concurrent use.
type Manager struct {
	cfg Config

	mu     sync.Mutex
	pods   map[types.UID]*entry
	byName map[types.NamespacedName][]*entry
}

// entry has the secrets of one pod.
type entry struct {
	values redact.Values

	// guarded by Manager.mu
	pod    *corev1.Pod // the API server's, shared
	over   bool        // the pod has ended, or was forgotten
	tokens map[tokenKey]*tokenSlot
}

// New returns a manager without pods.
func New(cfg Config) *Manager {
	return &Manager{cfg: cfg, pods: map[types.UID]*entry{}, byName: map[types.NamespacedName][]*entry{}}
}

// Track adds a pod. Until End, the pod may have the secrets that it references. pod is the API server's copy, which Track does not change.
func (m *Manager) Track(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[pod.UID]
	if p == nil {
		p = &entry{tokens: map[tokenKey]*tokenSlot{}}
		m.pods[pod.UID] = p
		name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		m.byName[name] = append(m.byName[name], p)
	}
	p.pod = pod
}

// End drops the tokens of an ended pod, which gets no more secrets. Its secret values are kept for redaction.
func (m *Manager) End(uid types.UID) {
	if m.cfg.Over != nil {
		defer m.cfg.Over(uid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		p.over, p.tokens = true, nil
		p.values.Forget(tokenSource) // tokens in texts are recognized by their format
	}
}

// Drop forgets a pod.
func (m *Manager) Drop(uid types.UID) {
	m.End(uid) // calls in progress hold the entry, not the manager
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil {
		return
	}
	delete(m.pods, uid)
	name := types.NamespacedName{Namespace: p.pod.Namespace, Name: p.pod.Name}
	m.byName[name] = slices.DeleteFunc(m.byName[name], func(other *entry) bool { return other == p })
	if len(m.byName[name]) == 0 {
		delete(m.byName, name)
	}
}

// DropOthers forgets the pods with a name except for the pod with the UID.
func (m *Manager) DropOthers(namespace, name string, uid types.UID) {
	m.mu.Lock()
	var others []types.UID
	for _, p := range m.byName[types.NamespacedName{Namespace: namespace, Name: name}] {
		if p.pod.UID != uid {
			others = append(others, p.pod.UID)
		}
	}
	m.mu.Unlock()
	for _, other := range others {
		m.Drop(other)
	}
}

// Values returns the secret values of a pod. The caller may add values.
func (m *Manager) Values(uid types.UID) *redact.Values {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		return &p.values
	}
	return &redact.Values{}
}

// Named returns the secret values of all pods with a name.
func (m *Manager) Named(namespace, name string) (all []*redact.Values) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.byName[types.NamespacedName{Namespace: namespace, Name: name}] {
		all = append(all, &p.values)
	}
	return all
}

// All returns the secret values of all pods.
func (m *Manager) All() []*redact.Values {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*redact.Values, 0, len(m.pods))
	for _, p := range m.pods {
		all = append(all, &p.values)
	}
	return all
}

// Pod returns the API server's shared copy of a pod that may have secrets. Only namespace, name and UID of pod are used. For a pod of another node,
// or an ended pod, the error is of the kind not-found.
func (m *Manager) Pod(pod *corev1.Pod) (*corev1.Pod, error) {
	_, api, err := m.findPod(pod)
	return api, err
}

// findPod returns the entry of a pod that may have secrets, and the API server's copy of the pod.
func (m *Manager) findPod(pod *corev1.Pod) (*entry, *corev1.Pod, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[pod.UID]
	if p == nil || p.over || p.pod.Namespace != pod.Namespace || p.pod.Name != pod.Name {
		return nil, nil, errdefs.NotFoundf("pod %s/%s (UID %s) is none of this node, or has ended", pod.Namespace, pod.Name, pod.UID)
	}
	return p, p.pod, nil
}

// ReadSecret is Config.Secret for a pod. It adds the content to the secret values of the pod.
func (m *Manager) ReadSecret(ctx context.Context, uid types.UID, namespace, name string) (*corev1.Secret, error) {
	secret, err := m.cfg.Secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	values := make([][]byte, 0, len(secret.Data))
	for _, value := range secret.Data {
		values = append(values, value)
	}
	m.Values(uid).Remember("secret/"+name, string(secret.UID)+"/"+secret.ResourceVersion, values...)
	return secret, nil
}
