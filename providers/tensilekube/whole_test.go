// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// startNode runs a complete node of the upper cluster until stop is called, or the test ends.
func startNode(t *testing.T, api *testapi.API, w *worker, name string, l *remotetest.Line, change ...func(*Config)) (stop func()) {
	t.Helper()
	config := w.config(name)
	for _, f := range change {
		f(&config)
	}
	n, stop := runNode(t, api, name, config, l.Through(w.API.Config))
	if err := n.WaitReady(t.Context(), remotetest.Patience); err != nil {
		t.Fatal(err)
	}
	return stop
}

// runNode is like startNode, for a lower cluster that may not answer yet.
func runNode(t *testing.T, api *testapi.API, name string, config Config, access *rest.Config, opts ...nodeutil.NodeOpt) (_ *nodeutil.Node, stop func()) {
	t.Helper()
	return remotetest.RunNode(t, api, name, func(in cli.ProviderInput) (remotetest.NodeProvider, error) { return newProvider(in, config, access) }, opts...)
}

// TestWholeNode also has a global Service, besides the checks of complete nodes.
func TestWholeNode(t *testing.T) {
	t.Parallel()
	w, api := startWorker(t, testapi.Start(t)), testapi.New(t, testapi.Options{})
	whole := remotetest.Whole{T: t, API: api, Remote: w.API, Name: "upper-node", Namespace: api.Namespace(t), Line: &remotetest.Line{}}
	whole.Start = func() (stop func()) {
		return startNode(t, api, w, whole.Name, whole.Line, func(c *Config) { c.GlobalServices = true })
	}
	whole.More = func() {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "outside", Labels: map[string]string{"global": "true"}}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		if _, err := api.Client.CoreV1().Services(whole.Namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "outside", Labels: map[string]string{discoveryv1.LabelServiceName: "outside"}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}}}}
		if _, err := api.Client.DiscoveryV1().EndpointSlices(whole.Namespace).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		remotetest.Until(t, "the global Service with its address of home is in the lower cluster", func() (bool, string) {
			list, err := w.API.Client.DiscoveryV1().EndpointSlices("").List(t.Context(),
				metav1.ListOptions{LabelSelector: remotecluster.LabelCluster + "=" + whole.Name}) // all nodes of a home share them
			if err != nil || len(list.Items) != 1 {
				return false, fmt.Sprint(err)
			}
			at := list.Items[0]
			_, err = w.API.Client.CoreV1().Services(at.Namespace).Get(t.Context(), at.Labels[discoveryv1.LabelServiceName], metav1.GetOptions{})
			return err == nil && at.Endpoints[0].Addresses[0] == "192.0.2.7", fmt.Sprint(err)
		})
		remotetest.Until(t, "events of the lower cluster are on a pod", func() (bool, string) {
			list, err := api.Client.CoreV1().Events(whole.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,reason=Scheduled"})
			return err == nil && len(list.Items) > 0 && strings.HasPrefix(list.Items[0].Message, "in the remote cluster: "), fmt.Sprint(err)
		})
	}
	whole.Run()
}

func homeOfTest(name string) string { return remotecluster.Home{Cluster: name, Node: name}.Selector() }
