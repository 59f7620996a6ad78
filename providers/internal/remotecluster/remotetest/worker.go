// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// Worker is a remote cluster with a node that runs what pods there ask for: containers are goroutines, behind a real API server, a
// real scheduler and a real kubelet API.
type Worker struct {
	API *testapi.API
	// Name is that of the node.
	Name  string
	Cloud *inprocess.Cloud
}

// Label has pods run on the worker of the test, in a cluster that tests share.
const Label = "test-worker"

// StartWorker runs the node until the test ends.
func StartWorker(t *testing.T, api *testapi.API) *Worker {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &Worker{API: api, Name: api.NodeName(t), Cloud: inprocess.New(ctx)}
	credentials := api.NodeCredentials(t, w.Name)
	mux := http.NewServeMux()
	n, err := nodeutil.NewNode(w.Name, func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return everything{inprocess.Open(w.Cloud, inprocess.Objects{ConfigMaps: c.ConfigMaps, Secrets: c.Secrets})}, nil, nil
	}, nodeutil.WithClient(api.Client),
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(credentials.CertFile, credentials.KeyFile), nodeutil.WithCAFromPath(credentials.CAFile)),
		nodeutil.AttachProviderRoutes(mux),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.Handler, cfg.HTTPListenAddr, cfg.NumWorkers = mux, "127.0.0.1:0", 16
			cfg.NodeSpec.Labels = map[string]string{Label: w.Name}
			cfg.NodeSpec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
			cfg.NodeSpec.Status.Capacity = Roomy()
			cfg.NodeSpec.Status.Allocatable = Roomy()
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

// CreatePod implements node.PodLifecycleHandler. Goroutines have nothing to mount: a volume of the lower cluster is an empty directory.
func (e everything) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	pod = pod.DeepCopy()
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil {
			v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	return e.Provider.CreatePod(ctx, pod)
}

// Roomy is more than any test needs.
func Roomy() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1k"),
	}
}

// Placement has pods run on this worker.
func (w *Worker) Placement() remotecluster.Placement {
	return remotecluster.Placement{
		NodeSelector: map[string]string{Label: w.Name},
		Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
}

// Settings are the lines of a configuration file for Placement.
func (w *Worker) Settings() string {
	return "placement: {nodeSelector: {" + Label + ": " + w.Name + "}, tolerations: [{operator: Exists}]}\n"
}

// Running are the pods at the worker of a pod at home.
func (w *Worker) Running(home *corev1.Pod) ([]*corev1.Pod, error) {
	all, err := inprocess.Open(w.Cloud, inprocess.Objects{}).List(context.Background())
	var found []*corev1.Pod
	for _, pod := range all {
		if pod.Labels[remotecluster.LabelUID] == string(home.UID) {
			found = append(found, pod)
		}
	}
	return found, err
}

// Instances counts the containers of a pod at home that run.
func (w *Worker) Instances(home *corev1.Pod) (n int, err error) {
	pods, err := w.Running(home)
	for _, pod := range pods {
		n += w.Cloud.Instances(pod.UID)
	}
	return n, err
}

// Kill ends a container of a pod at home.
func (w *Worker) Kill(home *corev1.Pod, container string) error {
	pods, err := w.Running(home)
	if err != nil || len(pods) != 1 {
		return fmt.Errorf("the worker has %d pods for %s (%w)", len(pods), home.Name, err)
	}
	return w.Cloud.Kill(pods[0].UID, container)
}

// Lose removes the remote pod, as somebody does by force.
func (w *Worker) Lose(home *corev1.Pod) error {
	pods, err := w.Running(home)
	for _, pod := range pods {
		err = errors.Join(err, w.API.Client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, *metav1.NewDeleteOptions(0)))
	}
	return err
}
