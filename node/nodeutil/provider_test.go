// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"io"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// memory is a provider that only stores its pods. An exec lasts until its caller ends it.
type memory struct {
	execs chan struct{} // receives a value when an exec has started

	mu     sync.Mutex
	pods   map[string]*corev1.Pod
	notify func(*corev1.Pod)
}

var _ Provider = (*memory)(nil)

func newMemory() *memory {
	return &memory{execs: make(chan struct{}, 10), pods: map[string]*corev1.Pod{}}
}

// asProvider is a NewProviderFunc for a node that is always healthy.
func (m *memory) asProvider(ProviderConfig) (Provider, node.NodeProvider, error) { return m, nil, nil }

func (m *memory) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { m.notify = notify }

func (m *memory) CreatePod(_ context.Context, pod *corev1.Pod) error {
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	m.put(pod)
	return nil
}

func (m *memory) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	m.put(pod)
	return nil
}

func (m *memory) put(pod *corev1.Pod) {
	m.mu.Lock()
	m.pods[pod.Namespace+"/"+pod.Name] = pod
	m.mu.Unlock()
	m.notify(pod)
}

func (m *memory) DeletePod(_ context.Context, pod *corev1.Pod) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, pod.Namespace+"/"+pod.Name)
	return nil
}

func (m *memory) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pod := m.pods[namespace+"/"+name]; pod != nil {
		return pod.DeepCopy(), nil
	}
	return nil, errdefs.NotFoundf("pod %s/%s is not here", namespace, name)
}

func (m *memory) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := m.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

func (m *memory) GetPods(context.Context) ([]*corev1.Pod, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*corev1.Pod
	for _, pod := range m.pods {
		all = append(all, pod.DeepCopy())
	}
	return all, nil
}

func (m *memory) GetContainerLogs(_ context.Context, _, podName, _ string, _ api.ContainerLogOpts) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("log of " + podName)), nil
}

func (m *memory) RunInContainer(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
	m.execs <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (m *memory) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return nil
}

func (m *memory) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

func (m *memory) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }

func (m *memory) GetMetricsProbes(context.Context) ([]*dto.MetricFamily, error) {
	return []*dto.MetricFamily{{
		Name: ptr.To("prober_probe_total"), Type: dto.MetricType_COUNTER.Enum(),
		Metric: []*dto.Metric{{Counter: &dto.Counter{Value: ptr.To(3.0)}}},
	}}, nil
}

func (m *memory) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return nil
}
