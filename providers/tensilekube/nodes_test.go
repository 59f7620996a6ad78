// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestNodesShareGlobalServices has two nodes of one upper cluster. The pods of both are selected in the lower
// cluster and not published as well. Addresses elsewhere are published once. When one node goes for good, the
// other one keeps them up to date.
func TestNodesShareGlobalServices(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	cluster := "nodes-" + w.API.NodeName(t)
	first, second := newUpper(t, w, cluster, "vk-0"), newUpper(t, w, cluster, "vk-1")
	var slicesAtHome []cache.Indexer
	var stops []func()
	pods := []*corev1.Pod{first.Pod("default", "web-0", stays()), second.Pod("default", "web-1", stays())}
	slice := first.behind("web")
	slice.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", UID: pods[0].UID}
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
		Addresses: []string{"192.0.2.3"}, NodeName: &second.Node, TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: pods[1].UID}, Conditions: slice.Endpoints[0].Conditions})
	for i, u := range []*upper{first, second} {
		u.config.GlobalServices = true
		if i == 0 {
			u.asTheReadmeSays()
		}
		if err := u.Services.Add(serviceAtHome("web", "true")); err != nil {
			t.Fatal(err)
		}
		atHome := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := atHome.Add(slice); err != nil {
			t.Fatal(err)
		}
		p, stop := u.start()
		u.Create(p, pods[i])
		u.UntilRuns(p, pods[i])
		slicesAtHome, stops = append(slicesAtHome, atHome), append(stops, stop)
		defer func() { u.Delete(p, pods[i]) }()
		p.UseEndpointSlices(discoverylisters.NewEndpointSliceLister(atHome))
	}
	published := func(want ...string) {
		t.Helper()
		rounds := 0
		first.Until(fmt.Sprintf("home's addresses over there are %v", want), func() (bool, string) {
			got := first.slicesOf("web")
			if slices.Equal(got, want) {
				rounds++ // of both nodes
			} else {
				rounds = 0
			}
			return rounds == 10, fmt.Sprint(got)
		})
	}
	published("192.0.2.2")
	there, err := w.API.Client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{LabelSelector: "endpointslice.kubernetes.io/managed-by=remote.virtual-kubelet.io"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range there.Items {
		if s.Namespace == first.home().NamespaceName("default") && (len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Kind != "Service") {
			t.Errorf("slice %s does not go with its Service: %v", s.Name, s.OwnerReferences)
		}
	}
	stops[0]()
	changed := slice.DeepCopy()
	changed.Endpoints[1].Addresses = []string{"192.0.2.9"}
	if err := slicesAtHome[1].Update(changed); err != nil {
		t.Fatal(err)
	}
	published("192.0.2.9")
	changed = changed.DeepCopy()
	changed.Endpoints[1].NodeName = ptr.To(second.Node)
	if err := slicesAtHome[1].Update(changed); err != nil {
		t.Fatal(err)
	}
	published()
}
