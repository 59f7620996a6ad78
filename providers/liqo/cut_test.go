// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestNetworkIsCut drops all packets between the clusters for a while, during which home pods are created and
// deleted. No pod may be lost or duplicated.
func TestNetworkIsCut(t *testing.T) {
	const stay, leave, come = 10, 5, 5
	length := 15 * time.Second
	if faultrow.Long() {
		length = 10 * time.Minute
	}
	w, api := startWorker(t, testapi.Start(t)), testapi.New(t, testapi.Options{NoScheduler: true})
	proxy, err := faultproxy.Start(w.API.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	name, ns := api.NodeName(t), api.Namespace(t)
	access := proxy.Config()
	access.ContentConfig = rest.ContentConfig{} // as in a kubeconfig file
	defer startThrough(t, api, w.placed(name, map[string]string{ns: w.API.Namespace(t)}), access, name)()
	u := remotetest.NewHome(t, name)
	each := func(prefix string, n int, do func(name string) error) {
		t.Helper()
		for i := range n {
			if err := do(fmt.Sprintf("%s-%d", prefix, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	create := func(name string) error {
		pod := u.Pod(ns, name, program.Program{Stay: program.Forever})
		pod.UID, pod.Spec.ServiceAccountName, pod.Spec.TerminationGracePeriodSeconds = "", "default", ptr.To(int64(1))
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		_, err := api.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	}
	remove := func(name string) error {
		return api.Client.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	list := func() []corev1.Pod {
		t.Helper()
		pods, err := api.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pods.Items
	}
	settled := func(n int) {
		t.Helper()
		remotetest.Until(t, fmt.Sprintf("%d pods run, each once", n), func() (bool, string) {
			here := list()
			for _, pod := range here {
				if count, err := w.Instances(&pod); err != nil || count != 1 || pod.Status.Phase != corev1.PodRunning {
					return false, fmt.Sprintf("%s is %s, with %d instances (%v)", pod.Name, pod.Status.Phase, count, err)
				}
			}
			there, err := w.API.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: remotecluster.Home{Cluster: name, Node: name}.Selector()})
			return err == nil && len(here) == n && len(there.Items) == n, fmt.Sprintf("%d pods here, %v", len(here), err)
		})
	}
	each("stays", stay, create)
	each("leaves", leave, create)
	settled(stay + leave)
	before := remotetest.Containers(t, api, ns)

	proxy.Blackhole()
	defer proxy.Heal()
	began := time.Now()
	each("comes", come, create)
	each("leaves", leave, remove)
	remotetest.Until(t, "the node is not Ready", func() (bool, string) {
		n, err := api.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionFalse, c.Message
			}
		}
		return false, "it has no condition"
	})
	select {
	case <-time.After(length - time.Since(began)):
	case <-t.Context().Done():
	}
	if pods := list(); len(pods) != stay+leave+come {
		t.Errorf("while the network is cut there are %d pods, want %d: nobody can know what has ended", len(pods), stay+leave+come)
	}
	proxy.Heal()
	settled(stay + come)
	after := remotetest.Containers(t, api, ns)
	for pod, id := range before {
		if strings.HasPrefix(pod, "stays") && after[pod] != id {
			t.Errorf("pod %s is container %s now, before it was %s", pod, after[pod], id)
		}
	}
	made := proxy.Count(func(r faultproxy.Request) bool {
		return faultproxy.Is("shadowpods", "create")(r) && r.Status == http.StatusCreated && !r.Injected
	})
	if made != stay+leave+come {
		t.Errorf("the remote API server made %d ShadowPods for %d", made, stay+leave+come)
	}
}
