// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestSecurityC7AntiAffinityOfAnotherNamespace maps two namespaces of home to one of the lower cluster. A pod of
// each demands to be the only one with its label on a node. The scheduler of the lower cluster runs both on its
// only node.
func TestSecurityC7AntiAffinityOfAnotherNamespace(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "namespaces", "vk-0")
	shared := w.API.Namespace(t)
	u.config.Namespaces = map[string]string{"default": shared, "other": shared}
	p, _ := u.start()
	for _, namespace := range []string{"default", "other"} {
		pod := u.Pod(namespace, "alone", stays())
		pod.Labels = map[string]string{"app": "alone"}
		pod.Annotations = map[string]string{annotationSelector: `{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
			{"topologyKey":"` + remotetest.Label + `","labelSelector":{"matchLabels":{"app":"alone"}}}]}}}`}
		u.Create(p, pod)
		u.UntilRuns(p, pod)
	}
	there, err := w.API.Client.CoreV1().Pods(shared).List(t.Context(), metav1.ListOptions{LabelSelector: "app=alone,remote.virtual-kubelet.io/namespace=other"})
	if err != nil || len(there.Items) != 1 {
		t.Errorf("%d pods of the namespace other are in %s (%v), want the one", len(there.Items), shared, err)
	}
}
