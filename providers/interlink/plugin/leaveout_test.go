// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// unprobed is a provider whose pods run without network probes. It records the pods that it is given.
type unprobed struct {
	nodeutil.Provider
	given map[string]*corev1.Pod // by the call
}

func (unprobed) Capabilities() capability.Declaration {
	return capability.Only().Accept(capability.NetworkProbes)
}

func (unprobed) UsePodObjects(node.PodObjects) {}

func (unprobed) GetPods(context.Context) ([]*corev1.Pod, error) {
	return []*corev1.Pod{probed()}, nil
}

func (unprobed) GetPod(context.Context, string, string) (*corev1.Pod, error) { return probed(), nil }

func (u unprobed) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	u.given["update"] = pod
	return nil
}

func (u unprobed) DeletePod(_ context.Context, pod *corev1.Pod) error {
	u.given["delete"] = pod
	return nil
}

// probed returns a pod with a probe of a port.
func probed() *corev1.Pod {
	pod := aPod("1")
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}}}}
	return pod
}

// TestRestartBringsNoProbeBack checks that a pod that runs without its probe is still given to the provider
// without the probe after a restart of the plugin, by calls and by the lister.
func TestRestartBringsNoProbeBack(t *testing.T) {
	given := map[string]*corev1.Pod{}
	s := newServer(t, func(of nodeutil.Provider) nodeutil.Provider { return unprobed{of, given} })
	r := record{Pod: probed(), Accepted: true}
	if err := s.pods.store.write(r); err != nil {
		t.Fatal(err)
	}
	if err := s.pods.recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := s.pods.get("1")
	if err := s.pods.undo(k); err != nil {
		t.Fatal(err)
	}
	s.pods.reported(probed())
	listed, err := corev1listers.NewPodLister(s.pods.objects.pods).List(labels.Everything())
	if err != nil || len(listed) != 1 {
		t.Fatalf("the lister has %d pods: %v", len(listed), err)
	}
	given["the lister"] = listed[0]
	for _, by := range []string{"update", "delete", "the lister"} {
		if pod := given[by]; pod == nil || pod.Spec.Containers[0].LivenessProbe != nil {
			t.Errorf("%s gives the provider %+v, want the pod without its probe", by, pod)
		}
	}
	if k.Pod.Spec.Containers[0].LivenessProbe == nil {
		t.Error("the record of the pod has changed")
	}
}
