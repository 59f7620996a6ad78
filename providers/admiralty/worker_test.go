// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"os"
	"testing"

	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestMain silences the log lines of the Kubernetes libraries about outages that the tests make.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}

// worker is a target cluster.
type worker struct{ *remotetest.Worker }

func startWorker(t *testing.T, api *testapi.API) *worker {
	t.Helper()
	return &worker{remotetest.StartWorker(t, api)}
}

// config returns a configuration for pods of this worker.
func (w *worker) config(cluster string) Config {
	return Config{ClusterName: cluster, Object: ObjectPodChaperon, Capacity: remotetest.Roomy(), Placement: w.Placement()}
}
