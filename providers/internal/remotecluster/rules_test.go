// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// TestPublishedC70RulesOfRemoteClusters translates a pod for each rule of a second cluster that other users have
// run into. Tensilekube, liqo and admiralty send the results of Translate.
func TestPublishedC70RulesOfRemoteClusters(t *testing.T) {
	long := strings.Repeat("long-name-", 25) + "pod" // 253 characters
	for _, rule := range []struct {
		name, source string
		change       func(pod *corev1.Pod)
		broken       func(pod *corev1.Pod) string // the problem of a pod that breaks the rule, or ""
	}{
		{"a value of a label has 63 characters at most", "admiraltyio/admiralty#54, 2020-08-13", func(pod *corev1.Pod) { pod.Name = long }, func(pod *corev1.Pod) string {
			for key, value := range pod.Labels {
				if len(validation.IsValidLabelValue(value)) > 0 {
					return key + ": " + value
				}
			}
			return strings.Join(validation.IsDNS1123Subdomain(pod.Name), "; ")
		}},
		{"a hostname has 63 characters at most", "admiraltyio/admiralty#54, 2020-08-13", func(pod *corev1.Pod) { pod.Name = long }, func(pod *corev1.Pod) string {
			return strings.Join(validation.IsDNS1123Label(pod.Spec.Hostname), "; ")
		}},
		{"a namespace has 63 characters at most", "liqotech/liqo#800, 2021-08-09", func(pod *corev1.Pod) { pod.Namespace = strings.Repeat("n", 63) }, func(pod *corev1.Pod) string {
			return strings.Join(validation.IsDNS1123Label(pod.Namespace), "; ")
		}},
		{"a class of priorities is that of the cluster", "rancher/k3k#340, 2025-05-01", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "test" }, func(pod *corev1.Pod) string { return pod.Spec.PriorityClassName }},
		{"a priority is computed by the cluster", "loft-sh/vcluster#22, 2021-05-19", func(pod *corev1.Pod) { pod.Spec.Priority = ptr.To[int32](2000) }, func(pod *corev1.Pod) string {
			if pod.Spec.Priority != nil {
				return "spec.priority"
			}
			return ""
		}},
		{"a preemption policy is computed by the cluster", "loft-sh/vcluster#1718, 2024-04-25", func(pod *corev1.Pod) { pod.Spec.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority) }, func(pod *corev1.Pod) string {
			return string(ptr.Deref(pod.Spec.PreemptionPolicy, ""))
		}},
		{"a service account is one of the cluster", "kubernetes/kubernetes#26457, 2016-05-27", func(pod *corev1.Pod) {
			pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "home", "home"
		}, func(pod *corev1.Pod) string { return pod.Spec.ServiceAccountName + pod.Spec.DeprecatedServiceAccount }},
		{"a scheduler is one of the cluster", "admiraltyio/admiralty#82, 2020-10-16", func(pod *corev1.Pod) { pod.Spec.SchedulerName = "home-scheduler" }, func(pod *corev1.Pod) string { return pod.Spec.SchedulerName }},
		{"a node is chosen by the cluster", "admiraltyio/admiralty#51, 2020-07-22", func(pod *corev1.Pod) { pod.Spec.NodeName = "home-node" }, func(pod *corev1.Pod) string { return pod.Spec.NodeName }},
	} {
		t.Run(rule.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
			rule.change(pod)
			home := testHome
			home.Cluster, home.Node = long, long
			tr, err := Translate(pod, Target{Home: home, Namespace: home.NamespaceName(pod.Namespace)})
			if err != nil {
				t.Fatal(err)
			}
			if broken := rule.broken(tr.Pod); broken != "" {
				t.Errorf("%s: %s", rule.source, broken)
			}
		})
	}
}
