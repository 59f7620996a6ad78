// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// virtualNode returns a node with the labels and the taint of this program.
func virtualNode(labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: nodeutil.NodeLabels("n1")}}
	n.Labels[corev1.LabelOSStable], n.Labels[corev1.LabelArchStable] = "linux", "amd64"
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	n.Spec.Taints = []corev1.Taint{{Key: "virtual-kubelet.io/provider", Value: "aci", Effect: corev1.TaintEffectNoSchedule}}
	return n
}

// proxySet returns a DaemonSet with the fields of the kube-proxy DaemonSets in
// virtual-kubelet/virtual-kubelet#20, admiraltyio/admiralty#114 and kubernetes-sigs/azurefile-csi-driver#454: it
// tolerates every taint, and needs the host.
func proxySet() appsv1.DaemonSet {
	set := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}}
	set.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-node-critical",
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "kube-proxy", Image: "kube-proxy", SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
			VolumeMounts: []corev1.VolumeMount{{Name: "m", MountPath: "/lib/modules", ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{Name: "m", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/lib/modules"}}}},
	}
	return set
}

// away gives a set a required affinity of one term.
func away(set appsv1.DaemonSet, expressions ...corev1.NodeSelectorRequirement) appsv1.DaemonSet {
	set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}}},
	}}
	return set
}

func notIn(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: values}
}

// TestPublishedB2DoctorNamesDaemonSetsThatCannotRun: the doctor warns of a DaemonSet whose pod lands on the node
// and cannot run there, or which tolerates every taint. The warning names the field and the remedy. Other
// DaemonSets cause no warning.
func TestPublishedB2DoctorNamesDaemonSetsThatCannotRun(t *testing.T) {
	only := capability.Only(capability.EmptyDir)
	for _, tc := range []struct {
		name         string
		set          appsv1.DaemonSet
		declared     *capability.Declaration
		problem, fix string // "": no finding
	}{
		{"a node agent", proxySet(), &only, "the pod of DaemonSet kube-system/kube-proxy for node n1 cannot run there, and its rollout waits for that pod: spec.volumes[0].hostPath: ", "the operator NotIn and the value virtual-kubelet"},
		{"a node agent, and a provider that does not say what it has", proxySet(), nil, "DaemonSet kube-system/kube-proxy tolerates every taint", "NotIn"},
		{"one with the affinity", away(proxySet(), notIn("type", "virtual-kubelet")), &only, "", ""},
		{"one that keeps away from other nodes", away(proxySet(), notIn("eks.amazonaws.com/compute-type", "fargate", "auto")), &only,
			"cannot run there", "kubectl label node n1 eks.amazonaws.com/compute-type=fargate"},
		{"one without a toleration", func() appsv1.DaemonSet {
			set := proxySet()
			set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
			return set
		}(), &only, "", ""},
		{"one with a selector", func() appsv1.DaemonSet {
			set := proxySet()
			set.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.azure.com/cluster": "a"}
			return set
		}(), &only, "", ""},
		{"one that is meant for the node", func() appsv1.DaemonSet {
			set := proxySet()
			set.Spec.Template.Spec = corev1.PodSpec{
				Tolerations: []corev1.Toleration{{Key: "virtual-kubelet.io/provider", Operator: corev1.TolerationOpExists}},
				Containers:  []corev1.Container{{Name: "c", Image: "i"}},
			}
			return set
		}(), &only, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.Node, w.Declared, w.sets = virtualNode(), tc.declared, []appsv1.DaemonSet{tc.set}
			r := w.examine()
			if tc.problem == "" {
				if len(r.Findings) > 0 || !slices.Contains(r.Passed, "daemonsets") {
					t.Errorf("got %+v, skipped %v, want nothing", r.Findings, r.Skipped)
				}
				return
			}
			if len(r.Findings) != 1 {
				t.Fatalf("got %+v, want one; skipped %v, unknown %v", r.Findings, r.Skipped, r.Unknown)
			}
			f := r.Findings[0]
			if f.Check != "daemonsets" || f.Severity != Warning || !strings.Contains(f.Problem, tc.problem) || !strings.Contains(f.Fix, tc.fix) {
				t.Errorf("got %+v\nwant %s; fix: %s", f, tc.problem, tc.fix)
			}
		})
	}
}

// TestRemedyIsTheSameEachTime: an agent that keeps away from two labels, such as prometheus-node-exporter, gets
// the same remedy each time.
func TestRemedyIsTheSameEachTime(t *testing.T) {
	set, node := away(proxySet(), notIn("eks.amazonaws.com/compute-type", "fargate"), notIn("type", "virtual-kubelet")), virtualNode("type", "")
	first := keepAway(&set, node)
	for range 50 {
		if again := keepAway(&set, node); again != first {
			t.Fatalf("got %q, before %q", again, first)
		}
	}
}

// TestDaemonSetsNeedARightToBeLookedAt: without the right to list DaemonSets, which no node has, the check is
// skipped and nothing is reported as wrong.
func TestDaemonSetsNeedARightToBeLookedAt(t *testing.T) {
	w := newWorld(t)
	w.Node, w.denied, w.sets = virtualNode(), "list daemonsets", []appsv1.DaemonSet{proxySet()}
	r := w.examine()
	i := slices.IndexFunc(r.Skipped, func(n Note) bool { return n.Check == "daemonsets" })
	if len(r.Findings) > 0 || i < 0 || !strings.Contains(r.Skipped[i].Text, "--admin-kubeconfig") {
		t.Errorf("got %+v, skipped %v", r.Findings, r.Skipped)
	}
}

// TestPublishedB2AgentsOfCloudsKeepAway: the affinities of published agents keep their pods from a node with its
// own labels. Some agents need a label of the cloud on the node; the table names this label.
func TestPublishedB2AgentsOfCloudsKeepAway(t *testing.T) {
	for _, agent := range []struct {
		source      string
		expressions []corev1.NodeSelectorRequirement
		label       []string // a label that the cloud's provider or an administrator sets
	}{
		{"kubernetes-sigs/azuredisk-csi-driver and azurefile-csi-driver (since #461): csi-azuredisk-node, csi-azurefile-node", []corev1.NodeSelectorRequirement{notIn("type", "virtual-kubelet")}, nil},
		{"Azure/azure-container-networking: azure-cns, azure-cni", []corev1.NodeSelectorRequirement{
			{Key: "kubernetes.azure.com/cluster", Operator: corev1.NodeSelectorOpExists}, notIn("type", "virtual-kubelet"),
		}, nil},
		{"Azure/secrets-store-csi-driver-provider-azure#472", []corev1.NodeSelectorRequirement{notIn("type", "virtual-kubelet")}, nil},
		{"tigera/operator#1048: calico-node on AKS", []corev1.NodeSelectorRequirement{
			{Key: "kubernetes.azure.com/cluster", Operator: corev1.NodeSelectorOpExists}, notIn("type", "virtual-kubelet"),
		}, nil},
		{"kubernetes-sigs/alibaba-cloud-csi-driver: csi-plugin, csi-local-plugin", []corev1.NodeSelectorRequirement{notIn("type", "virtual-kubelet")}, nil},
		{"aws/amazon-vpc-cni-k8s: aws-node", []corev1.NodeSelectorRequirement{
			{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}, notIn("eks.amazonaws.com/compute-type", "fargate"),
		}, []string{"eks.amazonaws.com/compute-type", "fargate"}},
		{"kubernetes-sigs/aws-efs-csi-driver: efs-csi-node", []corev1.NodeSelectorRequirement{notIn("eks.amazonaws.com/compute-type", "fargate")}, []string{"eks.amazonaws.com/compute-type", "fargate"}},
		{"kubernetes-sigs/aws-ebs-csi-driver: ebs-csi-node", []corev1.NodeSelectorRequirement{notIn("eks.amazonaws.com/compute-type", "fargate"), notIn("node.kubernetes.io/instance-type", "a1.medium", "a1.large")}, []string{"eks.amazonaws.com/compute-type", "fargate"}},
		{"newrelic/nri-kubernetes: kubelet", []corev1.NodeSelectorRequirement{notIn("eks.amazonaws.com/compute-type", "fargate")}, []string{"eks.amazonaws.com/compute-type", "fargate"}},
	} {
		set := away(proxySet(), agent.expressions...)
		if lands, err := landsOn(&set, virtualNode(agent.label...)); err != nil || lands {
			t.Errorf("%s: lands %t, %v, want it to keep away", agent.source, lands, err)
		}
		if agent.label == nil {
			continue
		}
		if lands, err := landsOn(&set, virtualNode()); err != nil || !lands {
			t.Errorf("%s: without the label %v: lands %t, %v: the label is not needed", agent.source, agent.label, lands, err)
		}
	}
}
