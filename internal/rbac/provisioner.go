// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtual-kubelet/virtual-kubelet/internal/localpath"
)

// Provisioner returns the StorageClass and the permissions to make volumes for it: a role for the identities of the nodes and for the ServiceAccount,
// and a policy that limits each identity to volumes on its own node, and the ServiceAccount to its nodes. Without the policy, an identity that may
// create volumes can read every file of every machine, through a volume of the kind hostPath.
func Provisioner(s Subject) []runtime.Object {
	name := s.Name + "-provisioner"
	meta := metav1.ObjectMeta{Name: name}
	const rbac = "rbac.authorization.k8s.io/v1"
	users, subjects := []string{User(s)}, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: s.Name, Namespace: s.Namespace}}
	for _, node := range s.Nodes {
		user := "system:node:" + node
		users, subjects = append(users, user), append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
	}
	own := slices.DeleteFunc(All(Provisioning), func(r Right) bool { return r.Needs != Provisioning })
	wait, drop := storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete
	return append([]runtime.Object{
		&storagev1.StorageClass{TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"}, ObjectMeta: metav1.ObjectMeta{Name: s.Name + "-local-path"},
			Provisioner: localpath.Driver, VolumeBindingMode: &wait, ReclaimPolicy: &drop},
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbac, Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rulesFor(s, "", own)},
		&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbac, Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects},
	}, provisionerPolicy(name, users, s.Nodes)...)
}

// provisionerPolicy limits users to local volumes on the nodes, with the label of a node.
func provisionerPolicy(name string, users, nodes []string) []runtime.Object {
	const version = "admissionregistration.k8s.io/v1"
	fail := admissionv1.Fail
	list := func(words []string) string {
		quoted := make([]string, 0, len(words))
		for _, w := range words {
			quoted = append(quoted, strconv.Quote(w))
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	message := "this identity makes and deletes local volumes on the nodes " + strings.Join(nodes, ", ") + " only"
	label := fmt.Sprintf("has(variables.subject.metadata.labels) && %[1]q in variables.subject.metadata.labels && variables.subject.metadata.labels[%[1]q] in variables.nodes", localpath.NodeLabel)
	affinity := `has(variables.subject.spec.nodeAffinity) && has(variables.subject.spec.nodeAffinity.required) && ` +
		`variables.subject.spec.nodeAffinity.required.nodeSelectorTerms.all(t, has(t.matchExpressions) && t.matchExpressions.exists(e, ` +
		`e.key == 'kubernetes.io/hostname' && e.operator == 'In' && e.values.all(v, v in variables.nodes)))`
	return []runtime.Object{
		&admissionv1.ValidatingAdmissionPolicy{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicy"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: &fail,
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumes"}},
				}}}},
				MatchConditions: []admissionv1.MatchCondition{{Name: "these-identities", Expression: "request.userInfo.username in " + list(users)}},
				Variables: []admissionv1.Variable{
					{Name: "nodes", Expression: "request.userInfo.username.startsWith('system:node:') ? [request.userInfo.username.substring(12)] : " + list(nodes)},
					{Name: "subject", Expression: "request.operation == 'DELETE' ? oldObject : object"},
				},
				Validations: []admissionv1.Validation{
					{Expression: label, Message: message},
					{Expression: "has(variables.subject.spec.local)", Message: message},
					{Expression: affinity, Message: message},
				},
			},
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicyBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		},
	}
}

const provisionerHead = `# SPDX-License-Identifier: Apache-2.0
#
# For nodes whose provider makes PersistentVolumes on its machine (provisionVolumes): the StorageClass, what they need beside
# what every node may, and a policy that keeps them to local volumes of their own nodes. Leave the policy out, and who has the
# identity of one node can have the files of all. Written by ` + "`go run ./internal/rbac/write`" + `.
# The names of nodes (%s) are those of the example; put in those of yours.
`

// ProvisionerYAML returns the objects of Provisioner in YAML.
func ProvisionerYAML(s Subject) ([]byte, error) { return fileOf(provisionerHead, s, Provisioner(s)) }
