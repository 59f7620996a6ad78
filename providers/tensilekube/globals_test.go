// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// serviceAtHome returns a Service of the home cluster.
func serviceAtHome(name, global string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "home", Annotations: map[string]string{"global": global}, Labels: map[string]string{"app": name}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ClusterIP: "10.96.7.7", ClusterIPs: []string{"10.96.7.7"}, Selector: map[string]string{"app": "web"},
			Ports:           []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP, NodePort: 30080}},
			SessionAffinity: corev1.ServiceAffinityNone,
		},
	}
}

// behind returns an EndpointSlice of a Service at home, with one address on the node of the test, and one
// elsewhere.
func (u *upper) behind(service string) *discoveryv1.EndpointSlice {
	ready := discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)}
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: service + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(8080)), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"192.0.2.1"}, NodeName: &u.Node, Conditions: ready},
			{Addresses: []string{"192.0.2.2"}, NodeName: ptr.To("real"), Zone: ptr.To("a"), Conditions: ready},
		},
	}
}

// slicesOf returns the addresses that home has published for a Service in the lower cluster.
func (u *upper) slicesOf(service string) (addresses []string) {
	u.Helper()
	list, err := u.worker.API.Client.DiscoveryV1().EndpointSlices(u.home().NamespaceName("default")).List(u.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelManagedBy + "=remote.virtual-kubelet.io," + discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		u.Fatal(err)
	}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			addresses = append(addresses, e.Addresses...)
		}
	}
	return addresses
}

// TestGlobalServices checks that marked Services of home are in the lower cluster: with an address of their own,
// the pods of the lower cluster, and the addresses of pods elsewhere at home.
func TestGlobalServices(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "globals", "vk-0")
	u.config.GlobalServices = true
	u.asTheReadmeSays()
	slices := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for name, marked := range map[string]string{"web": "true", "other": "true", "taken": "true", "private": "false"} {
		if err := u.Services.Add(serviceAtHome(name, marked)); err != nil {
			t.Fatal(err)
		}
		if err := slices.Add(u.behind(name)); err != nil {
			t.Fatal(err)
		}
	}
	p, stop := u.start()
	if !p.UsesEndpointSlices() {
		t.Error("globalServices is set, and no EndpointSlices are asked for")
	}
	pod := u.Pod("default", "web-0", stays())
	u.Create(p, pod)
	there := w.API.Client.CoreV1().Services(u.home().NamespaceName("default"))
	foreign := serviceAtHome("taken", "")
	foreign.Namespace, foreign.Spec = "", corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}
	foreign.UID = ""
	if _, err := there.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.UseEndpointSlices(discoverylisters.NewEndpointSliceLister(slices))
	var got *corev1.Service
	u.Until("the Service is in the lower cluster", func() (bool, string) {
		var err error
		got, err = there.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && len(u.slicesOf("web"))*len(u.slicesOf("other")) > 0, fmt.Sprint(err)
	})
	want := serviceAtHome("web", "").Spec
	want.Ports[0].NodePort = 0
	want.Selector[remotecluster.LabelCluster], want.Selector[remotecluster.LabelNamespace] = "globals", "default"
	if got.Spec.Type != corev1.ServiceTypeClusterIP || got.Spec.ClusterIP == "10.96.7.7" || got.Spec.ClusterIP == "" ||
		cmp.Diff(want.Ports, got.Spec.Ports) != "" || cmp.Diff(want.Selector, got.Spec.Selector) != "" {
		t.Errorf("the Service in the lower cluster is %+v", got.Spec)
	}
	if diff := cmp.Diff([]string{"192.0.2.2"}, u.slicesOf("web")); diff != "" {
		t.Errorf("addresses of home (-want +got): %s", diff)
	}
	if _, err := there.Get(t.Context(), "private", metav1.GetOptions{}); !apierrors.IsNotFound(err) || len(u.slicesOf("private")) > 0 {
		t.Errorf("a Service that is not marked: got %v and %v in the lower cluster", err, u.slicesOf("private"))
	}
	if s, err := there.Get(t.Context(), "taken", metav1.GetOptions{}); err != nil || s.Spec.Ports[0].Port != 1 || len(u.slicesOf("taken")) > 0 {
		t.Errorf("a Service of somebody else is now %v (%v), with addresses %v", s, err, u.slicesOf("taken"))
	}

	// A restart writes nothing, and removes nothing before home was listed.
	stop()
	for _, name := range []string{"taken", "other"} {
		if err := u.Services.Delete(serviceAtHome(name, "")); err != nil {
			t.Fatal(err)
		}
		if err := slices.Delete(u.behind(name)); err != nil {
			t.Fatal(err)
		}
	}
	p, _ = u.start()
	u.refreshed(p)
	if n := len(u.slicesOf("other")); n != 1 {
		t.Errorf("before home was listed there are %d addresses of a Service that went, want the one", n)
	}
	p.UseEndpointSlices(discoverylisters.NewEndpointSliceLister(slices))
	u.Until("what went at home is gone", func() (bool, string) {
		_, err := there.Get(t.Context(), "other", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && len(u.slicesOf("other")) == 0, fmt.Sprint(err)
	})
	u.line.Writes()
	for _, value := range []string{"three", "four"} { // everything is compared in between
		u.Put("refreshed", "objects", value)
		var writes []string
		u.Until("a change of a ConfigMap", func() (bool, string) { writes = u.line.Writes(); return len(writes) > 0, "" })
		if len(writes) != 1 || !strings.Contains(writes[0], "/configmaps/") {
			t.Errorf("a change of a ConfigMap made the writes %q, want the one", writes)
		}
	}

	// A change at home reaches the lower cluster, and without the mark the Service is removed there.
	changed := serviceAtHome("web", "true")
	changed.Spec.Ports[0].TargetPort = intstr.FromInt32(9090)
	if err := u.Services.Update(changed); err != nil {
		t.Fatal(err)
	}
	u.Until("the port is changed", func() (bool, string) {
		s, err := there.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && s.Spec.Ports[0].TargetPort.IntValue() == 9090 && s.UID == got.UID, fmt.Sprint(err)
	})
	if err := u.Services.Update(serviceAtHome("web", "false")); err != nil {
		t.Fatal(err)
	}
	u.Until("the Service is gone", func() (bool, string) {
		_, err := there.Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && len(u.slicesOf("web")) == 0, fmt.Sprint(err)
	})
	u.Delete(p, pod)
	u.UntilGone(p, pod)
}
