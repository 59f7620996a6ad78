// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// Patience is the maximum time that a test waits for a change.
const Patience = 2 * time.Minute

// Provider is the part of a provider that tests use.
type Provider interface {
	CreatePod(ctx context.Context, pod *corev1.Pod) error
	UpdatePod(ctx context.Context, pod *corev1.Pod) error
	DeletePod(ctx context.Context, pod *corev1.Pod) error
	GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	GetPods(ctx context.Context) ([]*corev1.Pod, error)
	GetContainerLogs(ctx context.Context, namespace, pod, container string, opts api.ContainerLogOpts) (io.ReadCloser, error)
	UsePodObjects(objects node.PodObjects)
	UsePodTokens(tokens node.PodTokens)
	NotifyPods(ctx context.Context, notify func(*corev1.Pod))
	RunInBackground(ctx context.Context) error
	Ping(ctx context.Context) error
}

// Home is a fake home cluster with one node, for a provider.
type Home struct {
	*testing.T
	// Node is the name of the node.
	Node           string
	Pods, Services cache.Indexer

	mu         sync.Mutex
	configMaps map[string]*corev1.ConfigMap // guarded by mu; keyed by namespace and name
	secrets    map[string]*corev1.Secret    // guarded by mu
	tokens     int                          // guarded by mu; number of tokens so far
	tokenLife  time.Duration                // guarded by mu; the time until a token must be replaced
	reports    []*corev1.Pod                // guarded by mu
}

// NewHome returns an empty home cluster.
func NewHome(t *testing.T, nodeName string) *Home {
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	return &Home{
		T: t, Node: nodeName, Pods: index(), Services: index(),
		configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}, tokenLife: time.Hour,
	}
}

// Identify gives the cluster its identity, which is the UID of the Service kubernetes.
func (h *Home) Identify(uid types.UID) {
	h.Helper()
	if err := h.Services.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", UID: uid}}); err != nil {
		h.Fatal(err)
	}
}

// Input returns the input for the constructor of a provider.
func (h *Home) Input() cli.ProviderInput {
	return cli.ProviderInput{NodeName: h.Node, ProviderConfig: nodeutil.ProviderConfig{
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.Node}},
		Pods: corev1listers.NewPodLister(h.Pods), Services: corev1listers.NewServiceLister(h.Services),
	}}
}

// Run runs the provider until stop is called, or the test ends.
func (h *Home) Run(p Provider) (stop func()) {
	h.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	p.UsePodObjects(h)
	p.UsePodTokens(h)
	p.NotifyPods(ctx, func(pod *corev1.Pod) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.reports = append(h.reports, pod)
	})
	done := make(chan error, 1)
	go func() { done <- p.RunInBackground(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.Errorf("RunInBackground: %v", err)
		}
	})
	h.Cleanup(stop)
	return stop
}

// Pod returns a pod at home that runs the given program.
func (h *Home) Pod(namespace, name string, does program.Program) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uuid.NewUUID(), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName: h.Node, RestartPolicy: corev1.RestartPolicyAlways, ServiceAccountName: "app",
			Containers: []corev1.Container{{Name: "main", Image: "program", Args: does.Args()}},
		},
	}
}

// Create adds a home pod, and calls CreatePod of the provider.
func (h *Home) Create(p Provider, pod *corev1.Pod) {
	h.Helper()
	if err := h.Pods.Add(pod); err != nil {
		h.Fatal(err)
	}
	if err := p.CreatePod(h.Context(), pod.DeepCopy()); err != nil {
		h.Fatal(err)
	}
}

// Delete calls DeletePod of the provider, as the node does for a deleted home pod.
func (h *Home) Delete(p Provider, pod *corev1.Pod) {
	h.Helper()
	pod = pod.DeepCopy()
	now, grace := metav1.Now(), int64(1)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
	if err := p.DeletePod(h.Context(), pod); err != nil && !errdefs.IsNotFound(err) {
		h.Fatal(err)
	}
}

// UntilRuns returns the pod once its container runs.
func (h *Home) UntilRuns(p Provider, pod *corev1.Pod) *corev1.Pod {
	h.Helper()
	var got *corev1.Pod
	h.Until(fmt.Sprintf("pod %s runs", pod.Name), func() (bool, string) {
		var err error
		got, err = p.GetPod(h.Context(), pod.Namespace, pod.Name)
		if err != nil {
			return false, err.Error()
		}
		s := got.Status
		return got.UID == pod.UID && s.Phase == corev1.PodRunning && len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Running != nil,
			fmt.Sprintf("%s %s %s", s.Phase, s.Reason, s.Message)
	})
	return got
}

// UntilGone waits until the provider no longer has the pod.
func (h *Home) UntilGone(p Provider, pod *corev1.Pod) {
	h.Helper()
	h.Until(fmt.Sprintf("pod %s is gone", pod.Name), func() (bool, string) {
		got, err := p.GetPod(h.Context(), pod.Namespace, pod.Name)
		return errdefs.IsNotFound(err) || got != nil && got.UID != pod.UID, fmt.Sprint(err)
	})
}

// Until calls the function Until for this test.
func (h *Home) Until(what string, ok func() (bool, string)) {
	h.Helper()
	Until(h.T, what, ok)
}

// Until polls ok until it returns true, because nothing signals the change. ok also returns the state, for the
// error message.
func Until(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(Patience)
	for {
		done, state := ok()
		if done {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("waited %s for: %s: %s", Patience, what, state)
		}
	}
}

// ReportsOf returns the reported states of a pod.
func (h *Home) ReportsOf(uid types.UID) (out []*corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.reports {
		if p.UID == uid {
			out = append(out, p)
		}
	}
	return out
}

// Log returns the output of a container.
func (h *Home) Log(p Provider, pod *corev1.Pod) string {
	h.Helper()
	r, err := p.GetContainerLogs(h.Context(), pod.Namespace, pod.Name, "main", api.ContainerLogOpts{})
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var out bytes.Buffer
	_, _ = io.Copy(&out, r)
	return out.String()
}

// Put writes a ConfigMap and a Secret of the given name, with the value under the key "key".
func (h *Home) Put(namespace, name, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	h.configMaps[namespace+"/"+name] = &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": value}}
	h.secrets[namespace+"/"+name] = &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte(value)}, Type: "example.com/own"}
}

// ConfigMap implements node.PodObjects.
func (h *Home) ConfigMap(_ context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.configMaps[pod.Namespace+"/"+name]; m != nil {
		return m, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
}

// Secret implements node.PodObjects.
func (h *Home) Secret(_ context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.secrets[pod.Namespace+"/"+name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

// Container implements node.PodObjects.
func (h *Home) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			c := pod.Spec.Containers[i].DeepCopy()
			c.Env = append(c.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "10.96.0.1"})
			return c, nil
		}
	}
	return nil, errdefs.NotFoundf("container %s", name)
}

// Token implements node.PodTokens.
func (h *Home) Token(_ context.Context, pod *corev1.Pod, _ *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens++
	now := time.Now()
	return node.PodToken{Token: fmt.Sprintf("token-%d-of-%s", h.tokens, pod.Name), RefreshAt: now.Add(h.tokenLife), ExpiresAt: now.Add(2 * h.tokenLife)}, nil
}

// ExpireTokens makes all tokens that are issued from now on immediately due for renewal.
func (h *Home) ExpireTokens() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokenLife = -time.Second
}
