// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestServicesAndEvents uses the rights of the README. Services of an offloaded namespace are in the remote
// cluster, with the addresses elsewhere at home, unless Liqo's annotation excludes a Service. Events of the
// remote pod are at home.
func TestServicesAndEvents(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "services", "vk-0")
	u.config.Services = true
	u.asTheReadmeSays()
	there := u.config.Namespaces["default"]
	slices := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, s := range []struct{ namespace, name, skip string }{{"default", "web", ""}, {"default", "forced", "false"}, {"default", "skipped", "true"}, {"nowhere", "web", ""}} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		if s.skip != "" {
			service.Annotations = map[string]string{"liqo.io/skip-reflection": s.skip}
		}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: s.namespace, Name: s.name + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: s.name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: ptr.To(int32(80))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, NodeName: &u.Node}, {Addresses: []string{"192.0.2.2"}, NodeName: ptr.To("real")}},
		}
		for at, o := range map[cache.Indexer]any{u.Services: service, slices: slice} {
			if err := at.Add(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, _ := u.start()
	pod := u.Pod("default", "web", stays())
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	p.UseEndpointSlices(discoverylisters.NewEndpointSliceLister(slices))
	published := func() (addresses []string) {
		list, err := w.API.Client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{LabelSelector: "remote.virtual-kubelet.io/cluster=services"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Items {
			for _, e := range s.Endpoints {
				addresses = append(addresses, s.Namespace+" "+s.Labels[discoveryv1.LabelServiceName]+" "+strings.Join(e.Addresses, ","))
			}
		}
		return addresses
	}
	want := fmt.Sprintf("[%s forced 192.0.2.2 %s web 192.0.2.2]", there, there)
	u.Until("the addresses are in the remote namespace", func() (bool, string) { got := fmt.Sprint(published()); return got == want, got })
	for name, is := range map[string]bool{"web": true, "forced": true, "skipped": false} {
		if _, err := w.API.Client.CoreV1().Services(there).Get(t.Context(), name, metav1.GetOptions{}); apierrors.IsNotFound(err) == is {
			t.Errorf("Service %s in the remote namespace: %v, want it there: %t", name, err, is)
		}
	}
	u.Until("an event of the remote pod is at home", func() (bool, string) {
		select {
		case got := <-u.events.Events:
			return strings.Contains(got, "in the remote cluster: "), got
		default:
			return false, "there is none"
		}
	})
	u.Delete(p, pod)
	u.UntilGone(p, pod)
}
