// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// AdmissionPolicy returns ValidatingAdmissionPolicies, and their bindings, that keep the ServiceAccount from writing to other nodes, their pods and
// their leases, and from requesting tokens for pods of other nodes or for no pod. They do not limit reads, because admission does not apply to reads.
func AdmissionPolicy(s Subject) []runtime.Object {
	var names []string
	for _, node := range s.Nodes {
		names = append(names, strconv.Quote(node))
	}
	const version = "admissionregistration.k8s.io/v1"
	fail, message := admissionv1.Fail, "this ServiceAccount acts for the nodes "+strings.Join(s.Nodes, ", ")+" only"
	rule := func(group, version string, resources []string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: operations, Rule: admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources},
		}}
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicy"}, ObjectMeta: metav1.ObjectMeta{Name: s.Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
				rule("", "v1", []string{"nodes", "nodes/status"}, admissionv1.Create, admissionv1.Update, admissionv1.Delete),
				rule("", "v1", []string{"pods", "pods/status"}, admissionv1.Create, admissionv1.Update, admissionv1.Delete),
				rule("", "v1", []string{"serviceaccounts/token"}, admissionv1.Create),
				rule("coordination.k8s.io", "v1", []string{"leases"}, admissionv1.Create, admissionv1.Update, admissionv1.Delete),
			}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "this-service-account", Expression: fmt.Sprintf("request.userInfo.username == %q", User(s)),
			}},
			Variables: []admissionv1.Variable{
				{Name: "nodes", Expression: "[" + strings.Join(names, ", ") + "]"},
				{Name: "subject", Expression: "request.operation == 'DELETE' ? oldObject : object"},
			},
			Validations: []admissionv1.Validation{
				{Expression: "!(request.resource.resource in ['nodes', 'leases']) || variables.subject.metadata.name in variables.nodes", Message: message},
				{Expression: "request.resource.resource != 'pods' || has(variables.subject.spec.nodeName) && variables.subject.spec.nodeName in variables.nodes", Message: message},
				{Expression: "request.resource.resource != 'serviceaccounts' || has(object.spec.boundObjectRef) && dyn(object.spec.boundObjectRef) != null && object.spec.boundObjectRef.kind == 'Pod'",
					Message: "this ServiceAccount gets tokens only that are bound to a pod"},
			},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicyBinding"}, ObjectMeta: metav1.ObjectMeta{Name: s.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: s.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	return append([]runtime.Object{policy, binding}, tokenPolicy(s, policy)...)
}

// tokenPolicy returns the policy for tokens, and its binding. A token request names a pod, but no node. So all pods of the namespace are parameters
// of the policy, and each pod of another node refuses a request for itself. A pod that the API server's watch does not have yet refuses nothing.
func tokenPolicy(s Subject, whole *admissionv1.ValidatingAdmissionPolicy) []runtime.Object {
	name := s.Name + "-tokens"
	rules := whole.Spec.MatchConstraints.ResourceRules
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta: whole.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: whole.Spec.FailurePolicy, ParamKind: &admissionv1.ParamKind{APIVersion: "v1", Kind: "Pod"},
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: slices.DeleteFunc(slices.Clone(rules), func(r admissionv1.NamedRuleWithOperations) bool {
				return !slices.Contains(r.Resources, "serviceaccounts/token")
			})},
			MatchConditions: whole.Spec.MatchConditions, Variables: whole.Spec.Variables[:1],
			Validations: []admissionv1.Validation{{
				Expression: "!has(object.spec.boundObjectRef) || dyn(object.spec.boundObjectRef) == null || object.spec.boundObjectRef.name != params.metadata.name || " +
					"has(params.spec.nodeName) && params.spec.nodeName in variables.nodes",
				Message: "this ServiceAccount gets tokens only for pods of the nodes " + strings.Join(s.Nodes, ", "),
			}},
		},
	}
	all, allow := &metav1.LabelSelector{}, admissionv1.AllowAction
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: whole.APIVersion, Kind: "ValidatingAdmissionPolicyBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			ParamRef: &admissionv1.ParamRef{Selector: all, ParameterNotFoundAction: &allow},
		},
	}
	return []runtime.Object{policy, binding}
}

// User returns the user name of the ServiceAccount.
func User(s Subject) string { return "system:serviceaccount:" + s.Namespace + ":" + s.Name }

const admissionHead = `# SPDX-License-Identifier: Apache-2.0
#
# Keeps the ServiceAccount of rbac.yaml from writing to nodes, leases and pods of others, and from tokens for those pods, which RBAC cannot. It
# cannot keep it from reading: admission does not see reads. Written by ` + "`go run ./internal/rbac/write`" + `.
# The names of nodes (%s) are those of the example; put in those of yours.
`

// AdmissionPolicyYAML returns the objects of AdmissionPolicy in YAML.
func AdmissionPolicyYAML(s Subject) ([]byte, error) {
	return fileOf(admissionHead, s, AdmissionPolicy(s))
}

// fileOf returns objects for a subject in YAML. The head has a placeholder for the names of its nodes.
func fileOf(head string, s Subject, objects []runtime.Object) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, head, strings.Join(s.Nodes, ", "))
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("write %T: %w", o, err)
		}
		b.WriteString("---\n")
		b.Write(bytes.TrimSuffix(text, []byte("status: {}\n")))
	}
	return b.Bytes(), nil
}
