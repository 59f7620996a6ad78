// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// withoutMachine is a provider whose pods have no host machine, so it lacks hostPath volumes.
type withoutMachine struct{ notifying }

func (withoutMachine) Capabilities() capability.Declaration {
	return capability.All().Lacks("there is no machine", capability.HostPath)
}

// TestPublishedB2RolloutPassesTheNode rolls out a DaemonSet of a node agent, as in virtual-kubelet/virtual-kubelet#20 and
// admiraltyio/admiralty#114, in a cluster of a plain node and a virtual one, where the pod cannot run. Without an affinity the rollout stops
// at the virtual node. With the affinity that docs/deploy.md recommends it reaches every other node.
func TestPublishedB2RolloutPassesTheNode(t *testing.T) {
	t.Parallel()
	virtual := newWorld(t)
	plain := newWorldIn(t, virtual.api)
	virtual.provider = func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return withoutMachine{notifying{polled{Backend: virtual.backend, changed: virtual.changed}}}, nil, nil
	}
	const group = "example.test/group" // the set is for these two nodes
	for _, w := range []*world{virtual, plain} {
		w.opts = append(w.opts, func(cfg *nodeutil.NodeConfig) error {
			cfg.NodeSpec.Labels[group] = virtual.nodeName
			if w == plain {
				delete(cfg.NodeSpec.Labels, "type")
			}
			return nil
		})
		w.start()
	}

	labels := map[string]string{"app": "agent"}
	spec := plain.spec()
	spec.NodeSelector = map[string]string{group: virtual.nodeName}
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "modules", MountPath: "/lib/modules", ReadOnly: true}}
	spec.Volumes = []corev1.Volume{{Name: "modules", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/lib/modules"}}}}
	sets := plain.client().AppsV1().DaemonSets(plain.namespace)
	set, err := sets.Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// pods waits until the set has these images by node, and the pod on the plain node runs.
	pods := func(want map[string]string) {
		t.Helper()
		what := fmt.Sprintf("the pods of the set are %v", want)
		await(t, query{plain.client().CoreV1().RESTClient(), "pods", plain.namespace, ""}, &corev1.Pod{}, what, func(found []*corev1.Pod) bool {
			for _, pod := range found {
				if want[pod.Spec.NodeName] != pod.Spec.Containers[0].Image || pod.DeletionTimestamp != nil ||
					running(pod) != (pod.Spec.NodeName == plain.nodeName) || pod.Spec.NodeName == virtual.nodeName && pod.Status.Reason != lifecycle.ReasonUnsupported {
					return false
				}
			}
			return len(found) == len(want)
		})
	}
	// update changes the template and waits for the status of the set.
	update := func(change func(*corev1.PodSpec), what string, done func(appsv1.DaemonSetStatus) bool) {
		t.Helper()
		// The controller may write the status of the set at the same time.
		if err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
			if set, err = sets.Get(t.Context(), "agent", metav1.GetOptions{}); err != nil {
				return err
			}
			change(&set.Spec.Template.Spec)
			set, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		await(t, query{plain.client().AppsV1().RESTClient(), "daemonsets", plain.namespace, "agent"}, &appsv1.DaemonSet{}, what, func(found []*appsv1.DaemonSet) bool {
			return len(found) == 1 && found[0].Status.ObservedGeneration == set.Generation && done(found[0].Status)
		})
	}

	first := set.Spec.Template.Spec.Containers[0].Image
	pods(map[string]string{plain.nodeName: first, virtual.nodeName: first})
	update(func(s *corev1.PodSpec) { s.Containers[0].Image = "example.test/image:2" }, "the pod of the virtual node alone is new", func(s appsv1.DaemonSetStatus) bool {
		return s.DesiredNumberScheduled == 2 && s.UpdatedNumberScheduled == 1 && s.NumberUnavailable == 1
	})
	pods(map[string]string{plain.nodeName: first, virtual.nodeName: "example.test/image:2"})
	update(func(s *corev1.PodSpec) {
		s.Containers[0].Image = "example.test/image:3"
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "type", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"virtual-kubelet"}},
			}}},
		}}}
	}, "the rollout is complete", func(s appsv1.DaemonSetStatus) bool {
		return s.DesiredNumberScheduled == 1 && s.UpdatedNumberScheduled == 1 && s.NumberAvailable == 1 && s.NumberMisscheduled == 0
	})
	pods(map[string]string{plain.nodeName: "example.test/image:3"})
	// The second image never reached the plain node.
	created := 0
	for _, call := range plain.backend.Calls() {
		if strings.HasPrefix(call, "create ") {
			created++
		}
	}
	if created != 2 {
		t.Errorf("%d pods were made on the plain node, want those of the first and of the third template", created)
	}
}
