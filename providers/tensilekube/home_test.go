// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// home is a complete node of a real upper cluster, with a breakable connection to a lower cluster.
type home struct {
	upper  // for until
	api    *testapi.API
	ns     string
	proxy  *faultproxy.Proxy
	config Config
	direct bool // the connection between the clusters is direct
	node   *nodeutil.Node
	stop   func()
}

// quarantine is the time for which many simultaneously missing pods are doubted. The default is minutes.
const quarantine = 15 * time.Second

func newHome(t *testing.T, api *testapi.API, w *worker) *home {
	t.Helper()
	proxy, err := faultproxy.Start(w.API.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	h := &home{upper: upper{Home: remotetest.NewHome(t, api.NodeName(t)), worker: w}, api: api, ns: api.Namespace(t), proxy: proxy}
	h.upper.config = w.config(h.Node)
	h.config = h.upper.config
	return h
}

// access returns the access to the lower cluster, with a request limit high enough for all tests.
func (h *home) access() *rest.Config {
	access := h.proxy.Config()
	if h.direct {
		access = rest.CopyConfig(h.worker.API.Config)
	}
	access.ContentConfig = rest.ContentConfig{} // as in a kubeconfig file
	access.QPS, access.Burst = 1000, 1000
	return access
}

// run starts the node. Problems of the lower cluster show in its status.
func (h *home) run() {
	h.Helper()
	h.node, h.stop = runNode(h.T, h.api, h.Node, h.config, h.access(), nodeutil.WithPodControllerConfigOverrides(func(c *node.PodControllerConfig) error {
		c.MissingPodsQuarantine = quarantine
		return nil
	}))
}

func (h *home) start() {
	h.Helper()
	h.run()
	if err := h.node.WaitReady(h.Context(), remotetest.Patience); err != nil {
		h.Fatal(err)
	}
}

// pod returns a pod of the node that runs until it is asked to end.
func (h *home) pod(name string) *corev1.Pod {
	pod := h.Pod(h.ns, name, stays())
	pod.UID, pod.Spec.ServiceAccountName, pod.Spec.TerminationGracePeriodSeconds = "", "default", ptr.To(int64(1))
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return pod
}

func (h *home) create(prefix string, n int) {
	h.Helper()
	h.each(prefix, n, func(name string) error {
		_, err := h.api.Client.CoreV1().Pods(h.ns).Create(h.Context(), h.pod(name), metav1.CreateOptions{})
		return err
	})
}

func (h *home) delete(prefix string, n int) {
	h.Helper()
	h.each(prefix, n, func(name string) error {
		return h.api.Client.CoreV1().Pods(h.ns).Delete(h.Context(), name, metav1.DeleteOptions{})
	})
}

func (h *home) each(prefix string, n int, do func(name string) error) {
	h.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := do(fmt.Sprintf("%s-%d", prefix, i)); err != nil {
				h.Error(err)
			}
		})
	}
	wg.Wait()
	if h.Failed() {
		h.FailNow()
	}
}

// ready returns the node's condition Ready.
func (h *home) ready() corev1.NodeCondition {
	h.Helper()
	n, err := h.api.Client.CoreV1().Nodes().Get(h.Context(), h.Node, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		h.Fatal(err)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// untilNotReady waits until the node reports the problem.
func (h *home) untilNotReady(says string) {
	h.Helper()
	h.Until("the node is not Ready, and says "+says, func() (bool, string) {
		c := h.ready()
		return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, says), fmt.Sprint(c.Status, " ", c.Reason, ": ", c.Message)
	})
}

func (h *home) untilReady() {
	h.Helper()
	h.Until("the node is Ready", func() (bool, string) {
		c := h.ready()
		return c.Status == corev1.ConditionTrue, fmt.Sprint(c.Status, " ", c.Reason, ": ", c.Message)
	})
}

// untilSettled waits until n pods run at home, each with exactly one pod and one instance in the lower cluster,
// and nothing else of the node is there. It returns their containers and restarts, by name.
func (h *home) untilSettled(n int) (ids map[string]string) {
	h.Helper()
	h.Until(fmt.Sprintf("%d pods run, each once", n), func() (bool, string) {
		var problem string
		ids, problem = h.look(n)
		return problem == "", problem
	})
	return ids
}

// look returns the containers of the pods at home, and the first difference from the state that untilSettled
// waits for.
func (h *home) look(n int) (ids map[string]string, problem string) {
	ctx := h.Context()
	here, err := h.api.Client.CoreV1().Pods(h.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err.Error()
	}
	there, err := h.worker.API.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: h.home().Selector()})
	if err != nil {
		return nil, err.Error()
	}
	instances, err := h.worker.all(h.Node)
	if err != nil {
		return nil, err.Error()
	}
	remote := map[string]int{}
	for _, pod := range there.Items {
		remote[pod.Labels[remotecluster.LabelUID]]++
	}
	ids = map[string]string{}
	for _, pod := range here.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || len(pod.Status.ContainerStatuses) != 1 {
			return nil, fmt.Sprintf("%s is %s (%s: %s), deleted %v", pod.Name, pod.Status.Phase, pod.Status.Reason, pod.Status.Message, pod.DeletionTimestamp)
		}
		if instances[pod.UID] != 1 || remote[string(pod.UID)] != 1 {
			return nil, fmt.Sprintf("%s has %d pods in the lower cluster and %d instances", pod.Name, remote[string(pod.UID)], instances[pod.UID])
		}
		s := pod.Status.ContainerStatuses[0]
		ids[pod.Name] = fmt.Sprint(s.ContainerID, " ", s.RestartCount)
	}
	if len(here.Items) != n || len(there.Items) != n || len(instances) != n {
		return nil, fmt.Sprintf("%d pods at home, %d in the lower cluster, %d instances", len(here.Items), len(there.Items), len(instances))
	}
	return ids, ""
}

// all counts the worker's instances of a cluster, by the UIDs of the pods at home.
func (w *worker) all(cluster string) (map[types.UID]int, error) {
	pods, err := inprocess.Open(w.Cloud, inprocess.Objects{}).List(context.Background())
	n := map[types.UID]int{}
	for _, pod := range pods {
		if running := w.Cloud.Instances(pod.UID); running > 0 && pod.Labels[remotecluster.LabelCluster] == cluster {
			n[types.UID(pod.Labels[remotecluster.LabelUID])] += running
		}
	}
	return n, err
}

// same fails the test for each earlier pod whose container has changed.
func (h *home) same(before, now map[string]string) {
	h.Helper()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			h.Errorf("pod %s is container %s now, before it was %s", name, now[name], before[name])
		}
	}
}
