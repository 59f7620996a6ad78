// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"errors"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestMain silences the log lines of the Kubernetes libraries about outages that the tests make.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}

// worker is a remote cluster in which Liqo runs.
type worker struct {
	*remotetest.Worker
	shadows
}

func startWorker(t *testing.T, api *testapi.API) *worker {
	t.Helper()
	return &worker{remotetest.StartWorker(t, api), startShadows(t, api)}
}

// config returns a home cluster's configuration for pods of this worker. It has remote namespaces for default
// and other, which are removed with the test.
func (w *worker) config(t *testing.T, cluster string) Config {
	t.Helper()
	return w.placed(cluster, map[string]string{"default": w.API.Namespace(t), "other": w.API.Namespace(t)})
}

// placed returns a configuration whose pods run on this worker.
func (w *worker) placed(cluster string, namespaces map[string]string) Config {
	return Config{ClusterName: cluster, ForeignClusterID: "foreign", Namespaces: namespaces, Capacity: remotetest.Roomy(), Placement: w.Placement()}
}

// Lose forcibly removes the remote pod and its ShadowPod, as a third party may. The pod's owner is removed from
// the pod first: the garbage collector would let the pod end gracefully, with an exit code.
func (w *worker) Lose(home *corev1.Pod) error {
	pods, err := w.Running(home)
	for _, pod := range pods {
		_, orphaned := w.API.Client.CoreV1().Pods(pod.Namespace).Patch(context.Background(), pod.Name, types.MergePatchType,
			[]byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{})
		err = errors.Join(err, orphaned)
		err = errors.Join(err, w.shadows.of(pod.Namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{}))
		err = errors.Join(err, w.API.Client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, *metav1.NewDeleteOptions(0)))
	}
	return err
}
