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

// Config is where a Manager gets things from.
type Config struct {
	// Accounts asks for tokens. Nil: there are none.
	Accounts corev1client.ServiceAccountsGetter
	// Secret reads a Secret by name. An error for which apierrors.IsNotFound is true says
	// that it does not exist; any other says nothing about it.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Over is told of a pod that gets nothing any more, perhaps more than once; nil for nobody. It must return at once.
	Over func(types.UID)
	// Recorder gets warnings about Secrets that cannot be used.
	Recorder record.EventRecorder
	// Before is called before a token of a service account is asked for; nil for nothing.
	Before func(ctx context.Context, namespace, account string)
}

// Manager keeps what belongs to each pod. It can be used from any goroutine.
type Manager struct {
	cfg Config

	mu     sync.Mutex
	pods   map[types.UID]*entry
	byName map[types.NamespacedName][]*entry
}

// entry is what belongs to one pod.
type entry struct {
	values redact.Values

	// guarded by Manager.mu
	pod    *corev1.Pod // the API server's, shared
	over   bool        // the pod has ended, or is forgotten
	tokens map[tokenKey]*tokenSlot
}

// New returns a manager without pods.
func New(cfg Config) *Manager {
	return &Manager{cfg: cfg, pods: map[types.UID]*entry{}, byName: map[types.NamespacedName][]*entry{}}
}

// Track begins with a pod: from now on it can have what it names, until End. pod is the API server's copy, and is not changed.
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

// End forgets the tokens of a pod that has ended. It gets nothing any more. What must not
// be said about it is still known.
func (m *Manager) End(uid types.UID) {
	if m.cfg.Over != nil {
		defer m.cfg.Over(uid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		p.over, p.tokens = true, nil
		p.values.Forget(tokenSource) // what is left of them in a text is known by its looks
	}
}

// Drop forgets a pod.
func (m *Manager) Drop(uid types.UID) {
	m.End(uid) // what is under way for it has the entry, not the manager
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

// Values returns what must not be said about a pod. They may be added to.
func (m *Manager) Values(uid types.UID) *redact.Values {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		return &p.values
	}
	return &redact.Values{}
}

// Named returns what must not be said about the pods of a name.
func (m *Manager) Named(namespace, name string) (all []*redact.Values) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.byName[types.NamespacedName{Namespace: namespace, Name: name}] {
		all = append(all, &p.values)
	}
	return all
}

// All returns what must not be said about any pod.
func (m *Manager) All() []*redact.Values {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*redact.Values, 0, len(m.pods))
	for _, p := range m.pods {
		all = append(all, &p.values)
	}
	return all
}

// Pod returns the API server's copy of a pod that may have something, which is shared. Of pod only namespace, name and UID
// count; one that is not this node's, or has ended, is an error of the kind not-found.
func (m *Manager) Pod(pod *corev1.Pod) (*corev1.Pod, error) {
	_, api, err := m.find(pod)
	return api, err
}

// find returns the entry of a pod that may have something, and the API server's copy of it.
func (m *Manager) find(pod *corev1.Pod) (*entry, *corev1.Pod, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[pod.UID]
	if p == nil || p.over || p.pod.Namespace != pod.Namespace || p.pod.Name != pod.Name {
		return nil, nil, errdefs.NotFoundf("pod %s/%s (UID %s) is none of this node, or has ended", pod.Namespace, pod.Name, pod.UID)
	}
	return p, p.pod, nil
}

// ReadSecret is Config.Secret for a pod: what it returns must not be said about the pod.
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
