// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// declaring is a provider that declares no features.
type declaring struct{ *memory }

func (declaring) Capabilities() capability.Declaration { return capability.Only() }

// withoutProbes is an option that accepts pods without their network probes.
func withoutProbes(cfg *NodeConfig) error {
	cfg.PodControllerConfigOpts = append(cfg.PodControllerConfigOpts, func(pods *node.PodControllerConfig) error {
		pods.AcceptUnenforced = []capability.Feature{capability.NetworkProbes}
		return nil
	})
	return nil
}

// probedPod returns a pod of the node n1 with a probe of a port.
func probedPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "probed", UID: "1"}, Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{
		Name: "c", Image: "i", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}},
	}}}}
}

// TestListerHasNothingThatThePodRunsWithout: the operator accepts that the pod runs without its probe. The
// provider's lister shows the pod without the probe, before and after a restart.
func TestListerHasNothingThatThePodRunsWithout(t *testing.T) {
	outsideCluster(t)
	backend := newMemory()
	client := fake.NewClientset()
	if _, err := client.CoreV1().Pods("d").Create(t.Context(), probedPod(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, life := range []string{"the first process", "the second process"} {
		var pods corev1listers.PodLister
		r := start(t, func(cfg ProviderConfig) (Provider, node.NodeProvider, error) {
			pods = cfg.Pods
			return declaring{backend}, nil, nil
		}, WithClient(client), withoutProbes)
		listed, err := pods.List(labels.Everything())
		if err != nil || len(listed) != 1 {
			t.Fatalf("%s: the provider lists %d pods: %v", life, len(listed), err)
		}
		inNamespace, err := pods.Pods("d").List(labels.Everything())
		if err != nil || len(inNamespace) != 1 {
			t.Fatalf("%s: the provider lists %d pods of the namespace: %v", life, len(inNamespace), err)
		}
		got, err := pods.Pods("d").Get("probed")
		if err != nil {
			t.Fatal(err)
		}
		for way, pod := range map[string]*corev1.Pod{"List": listed[0], "List of the namespace": inNamespace[0], "Get": got} {
			if pod.Spec.Containers[0].LivenessProbe != nil {
				t.Errorf("%s: %s gives the provider the probe that the pod runs without", life, way)
			}
		}
		if kept, err := r.lister.Pods("d").Get("probed"); err != nil || kept.Spec.Containers[0].LivenessProbe == nil {
			t.Errorf("%s: the pod in the cache of the informer has changed: %+v, %v", life, kept, err)
		}
		r.stop()
		<-r.Done()
	}
}

// TestPodWithAllItAsksForIsHandedAsItIs: if no field is left out of a pod, the provider gets the pod of the
// cache without a copy.
func TestPodWithAllItAsksForIsHandedAsItIs(t *testing.T) {
	outsideCluster(t)
	n, err := NewNode("n1", func(ProviderConfig) (Provider, node.NodeProvider, error) { return declaring{newMemory()}, nil, nil }, WithClient(fake.NewClientset()),
		withoutProbes)
	if err != nil {
		t.Fatal(err)
	}
	plain := probedPod()
	plain.Spec.Containers[0].LivenessProbe = nil
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := index.Add(plain); err != nil {
		t.Fatal(err)
	}
	got, err := handedPods{corev1listers.NewPodLister(index), &n.pods}.Pods("d").Get("probed")
	if err != nil || got != plain {
		t.Errorf("got %p (%v), want the pod of the cache %p", got, err, plain)
	}
}
