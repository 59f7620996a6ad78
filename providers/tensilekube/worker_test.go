// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// TestMain silences what the Kubernetes libraries say of the outages that these tests make.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}

// worker is a lower cluster with a node that runs what pods there ask for: containers are goroutines, behind a real API server, a
// real scheduler and a real kubelet API.
type worker struct {
	api   *testapi.API
	name  string
	cloud *inprocess.Cloud
}

// label has pods run on the worker of the test, in a cluster that tests share.
const label = "test-worker"

func startWorker(t *testing.T, api *testapi.API) *worker {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &worker{api: api, name: api.NodeName(t), cloud: inprocess.New(ctx)}
	credentials := api.NodeCredentials(t, w.name)
	mux := http.NewServeMux()
	n, err := nodeutil.NewNode(w.name, func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return everything{inprocess.Open(w.cloud, inprocess.Objects{ConfigMaps: c.ConfigMaps, Secrets: c.Secrets})}, nil, nil
	}, nodeutil.WithClient(api.Client),
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(credentials.CertFile, credentials.KeyFile), nodeutil.WithCAFromPath(credentials.CAFile)),
		nodeutil.AttachProviderRoutes(mux),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.Handler, cfg.HTTPListenAddr, cfg.NumWorkers = mux, "127.0.0.1:0", 16
			cfg.NodeSpec.Labels = map[string]string{label: w.name}
			cfg.NodeSpec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
			cfg.NodeSpec.Status.Capacity = roomy()
			cfg.NodeSpec.Status.Allocatable = roomy()
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = n.Run(ctx) }() // Err has the error
	t.Cleanup(func() {
		cancel()
		<-n.Done()
		if err := n.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the worker ended with %v", err)
		}
	})
	if err := n.WaitReady(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	return w
}

// everything takes pods whose fields mean nothing to goroutines.
type everything struct{ *inprocess.Provider }

// Capabilities implements capability.Declarer.
func (everything) Capabilities() capability.Declaration { return capability.All() }

func roomy() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1k")}
}

// config is one for pods of this worker.
func (w *worker) config(cluster string) Config {
	return Config{ClusterID: cluster, Capacity: roomy(), Placement: remotecluster.Placement{
		NodeSelector: map[string]string{label: w.name},
		Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}
}

// running are the pods at the worker of a pod at home.
func (w *worker) running(home *corev1.Pod) ([]*corev1.Pod, error) {
	all, err := inprocess.Open(w.cloud, inprocess.Objects{}).List(context.Background())
	var found []*corev1.Pod
	for _, pod := range all {
		if pod.Labels[remotecluster.LabelUID] == string(home.UID) {
			found = append(found, pod)
		}
	}
	return found, err
}

func (w *worker) instances(home *corev1.Pod) (n int, err error) {
	pods, err := w.running(home)
	for _, pod := range pods {
		n += w.cloud.Instances(pod.UID)
	}
	return n, err
}

func (w *worker) kill(home *corev1.Pod, container string) error {
	pods, err := w.running(home)
	if err != nil || len(pods) != 1 {
		return fmt.Errorf("the worker has %d pods for %s (%w)", len(pods), home.Name, err)
	}
	return w.cloud.Kill(pods[0].UID, container)
}

// lose removes the remote pod, as somebody does by force.
func (w *worker) lose(home *corev1.Pod) error {
	pods, err := w.running(home)
	for _, pod := range pods {
		err = errors.Join(err, w.api.Client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, *metav1.NewDeleteOptions(0)))
	}
	return err
}
