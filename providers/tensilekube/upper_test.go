// SPDX-License-Identifier: Apache-2.0

package tensilekube

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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// patience is how long a test waits for anything.
const patience = 2 * time.Minute

// upper is an upper cluster with one node, as a provider sees it.
type upper struct {
	*testing.T
	worker         *worker
	config         Config
	node           string
	access         *rest.Config
	line           *line
	pods, services cache.Indexer

	mu         sync.Mutex
	configMaps map[string]*corev1.ConfigMap // guarded by mu; by namespace and name
	secrets    map[string]*corev1.Secret    // guarded by mu
	tokens     int                          // guarded by mu; how many were issued
	tokenLife  time.Duration                // guarded by mu; until one is to be replaced
	reports    []*corev1.Pod                // guarded by mu
}

func newUpper(t *testing.T, w *worker, cluster, nodeName string) *upper {
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	u := &upper{
		T: t, worker: w, config: w.config(cluster), node: nodeName, line: &line{}, pods: index(), services: index(),
		configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}, tokenLife: time.Hour,
	}
	u.access, u.config.refreshEvery = u.line.through(w.api.Config), 200*time.Millisecond
	return u
}

// start runs the provider until stop is called, or the test ends.
func (u *upper) start() (p *provider, stop func()) {
	u.Helper()
	p, err := newProvider(cli.ProviderInput{NodeName: u.node, ProviderConfig: nodeutil.ProviderConfig{
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: u.node}},
		Pods: corev1listers.NewPodLister(u.pods), Services: corev1listers.NewServiceLister(u.services),
	}}, u.config, u.access)
	if err != nil {
		u.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(u.Context()))
	p.UsePodObjects(u)
	p.UsePodTokens(u)
	p.NotifyPods(ctx, func(pod *corev1.Pod) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.reports = append(u.reports, pod)
	})
	done := make(chan error, 1)
	go func() { done <- p.RunInBackground(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			u.Errorf("RunInBackground: %v", err)
		}
	})
	u.Cleanup(stop)
	return p, stop
}

// pod is one at home that does what the program says.
func (u *upper) pod(namespace, name string, does program.Program) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uuid.NewUUID(), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName: u.node, RestartPolicy: corev1.RestartPolicyAlways, ServiceAccountName: "app",
			Containers: []corev1.Container{{Name: "main", Image: "program", Args: does.Args()}},
		},
	}
}

func (u *upper) create(p *provider, pod *corev1.Pod) {
	u.Helper()
	if err := u.pods.Add(pod); err != nil {
		u.Fatal(err)
	}
	if err := p.CreatePod(u.Context(), pod.DeepCopy()); err != nil {
		u.Fatal(err)
	}
}

// delete asks for the stop, as the node does when the pod is deleted at home.
func (u *upper) delete(p *provider, pod *corev1.Pod) {
	u.Helper()
	pod = pod.DeepCopy()
	now, grace := metav1.Now(), int64(1)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
	if err := p.DeletePod(u.Context(), pod); err != nil && !errdefs.IsNotFound(err) {
		u.Fatal(err)
	}
}

func (u *upper) untilRuns(p *provider, pod *corev1.Pod) *corev1.Pod {
	u.Helper()
	var got *corev1.Pod
	u.until(fmt.Sprintf("pod %s runs", pod.Name), func() (bool, string) {
		var err error
		got, err = p.GetPod(u.Context(), pod.Namespace, pod.Name)
		if err != nil {
			return false, err.Error()
		}
		s := got.Status
		return got.UID == pod.UID && s.Phase == corev1.PodRunning && len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Running != nil,
			fmt.Sprintf("%s %s %s", s.Phase, s.Reason, s.Message)
	})
	return got
}

func (u *upper) untilGone(p *provider, pod *corev1.Pod) {
	u.Helper()
	u.until(fmt.Sprintf("pod %s is gone", pod.Name), func() (bool, string) {
		got, err := p.GetPod(u.Context(), pod.Namespace, pod.Name)
		return errdefs.IsNotFound(err) || got != nil && got.UID != pod.UID, fmt.Sprint(err)
	})
}

// until looks again and again, as there is nothing that could tell.
func (u *upper) until(what string, ok func() (bool, string)) {
	u.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(patience)
	for {
		done, state := ok()
		if done {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout:
			u.Fatalf("waited %s for: %s: %s", patience, what, state)
		}
	}
}

// remote returns the remote pod of a pod.
func (u *upper) remote(pod *corev1.Pod) *corev1.Pod {
	u.Helper()
	got, err := u.worker.api.Client.CoreV1().Pods(u.home().NamespaceName(pod.Namespace)).Get(u.Context(), u.home().PodName(pod), metav1.GetOptions{})
	if err != nil {
		u.Fatal(err)
	}
	return got
}

func (u *upper) home() remotecluster.Home {
	return remotecluster.Home{Cluster: u.config.ClusterID, Node: u.node}
}

// reportsOf are the reports of a pod.
func (u *upper) reportsOf(uid types.UID) (out []*corev1.Pod) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.reports {
		if p.UID == uid {
			out = append(out, p)
		}
	}
	return out
}

// log is what a container printed.
func (u *upper) log(p *provider, pod *corev1.Pod) string {
	u.Helper()
	r, err := p.GetContainerLogs(u.Context(), pod.Namespace, pod.Name, "main", api.ContainerLogOpts{})
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var out bytes.Buffer
	_, _ = io.Copy(&out, r)
	return out.String()
}

func (u *upper) put(namespace, name, value string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	u.configMaps[namespace+"/"+name] = &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": value}}
	u.secrets[namespace+"/"+name] = &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte(value)}, Type: "example.com/own"}
}

// ConfigMap implements node.PodObjects.
func (u *upper) ConfigMap(_ context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if m := u.configMaps[pod.Namespace+"/"+name]; m != nil {
		return m, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
}

// Secret implements node.PodObjects.
func (u *upper) Secret(_ context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s := u.secrets[pod.Namespace+"/"+name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

// Container implements node.PodObjects.
func (u *upper) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
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
func (u *upper) Token(_ context.Context, pod *corev1.Pod, _ *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tokens++
	now := time.Now()
	return node.PodToken{Token: fmt.Sprintf("token-%d-of-%s", u.tokens, pod.Name), RefreshAt: now.Add(u.tokenLife), ExpiresAt: now.Add(2 * u.tokenLife)}, nil
}
