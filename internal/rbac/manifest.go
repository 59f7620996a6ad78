// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Subject is the ServiceAccount with the permissions, and its nodes.
type Subject struct {
	// Name is the name of the ServiceAccount, the ClusterRole, the Role and their bindings.
	Name, Namespace string
	// Nodes are the names of its nodes. With an empty list, the permissions apply to all nodes and leases.
	Nodes []string
}

func splitResource(resource string) (name, sub string) {
	name, sub, _ = strings.Cut(resource, "/")
	return name, sub
}

// rulesFor returns the rules for a namespace, or "" for all namespaces.
func rulesFor(s Subject, namespace string, rights []Right) (out []rbacv1.PolicyRule) {
	for _, r := range rights {
		if r.Namespace != namespace {
			continue
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs}
		if r.Own {
			rule.ResourceNames = s.Nodes
		}
		out = append(out, rule)
	}
	return out
}

// Objects returns the ServiceAccount, the ClusterRole and the Role with their bindings, for a
// node with the features.
func Objects(s Subject, features ...Feature) []runtime.Object {
	rights := All(features...)
	meta := metav1.ObjectMeta{Name: s.Name}
	own := metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace}
	lease := metav1.ObjectMeta{Name: s.Name, Namespace: leases}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: s.Name, Namespace: s.Namespace}}
	const version = "rbac.authorization.k8s.io/v1"
	return []runtime.Object{
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: own},
		&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rulesFor(s, "", rights)},
		&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.Name}, Subjects: subjects},
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Role"}, ObjectMeta: lease, Rules: rulesFor(s, leases, rights)},
		&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: lease,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: s.Name}, Subjects: subjects},
	}
}

// Shipped is the subject of the manifests in deploy/manifests.
var Shipped = Subject{Name: "virtual-kubelet", Namespace: "virtual-kubelet", Nodes: []string{"virtual-kubelet"}}

// ShippedFeatures are the features of the manifests in deploy/manifests.
func ShippedFeatures() []Feature {
	return []Feature{Serving, CertificateRequests, PodTokens, TrustBundles, Claims}
}

const head = `# SPDX-License-Identifier: Apache-2.0
#
# What a virtual node may do when it runs as a ServiceAccount. Written by ` + "`go run ./internal/rbac/write`" + ` from the
# table in internal/rbac; a test compares it with what nodes do.
#
# A node with an identity of its own (system:node:NAME in the group system:nodes, as a kubelet has it) needs nothing
# of this, and is safer: the Node authorizer lets it read only what its own pods name.
# The rights below on pods, ConfigMaps and Secrets are for all of the cluster, because RBAC knows nothing of
# nodes: whoever gets the token of this ServiceAccount can read every Secret whose name is known. admission.yaml
# keeps it from writing to the nodes and pods of others.
#
# The names of nodes (%s) are those of this example; put in those of yours.
`

// YAML returns the objects in YAML.
func YAML(s Subject, features ...Feature) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, head, strings.Join(s.Nodes, ", "))
	rights := All(features...)
	for _, o := range Objects(s, features...) {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("write %T: %w", o, err)
		}
		b.WriteString("---\n")
		b.Write(explainRules(text, rights))
	}
	return b.Bytes(), nil
}

// explainRules puts the reason before each rule.
func explainRules(text []byte, rights []Right) []byte {
	var b bytes.Buffer
	switch {
	case bytes.Contains(text, []byte("\nkind: ClusterRole\n")):
		rights = rightsIn("", rights)
	case bytes.Contains(text, []byte("\nkind: Role\n")):
		rights = rightsIn(leases, rights)
	default:
		rights = nil
	}
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("- apiGroups:")) && len(rights) > 0 {
			why := rights[0].Why
			if rights[0].Needs != "" {
				why += " (" + string(rights[0].Needs) + ")"
			}
			fmt.Fprintf(&b, "# %s\n", why)
			rights = rights[1:]
		}
		b.Write(line)
	}
	return b.Bytes()
}

func rightsIn(namespace string, rights []Right) (out []Right) {
	for _, r := range rights {
		if r.Namespace == namespace {
			out = append(out, r)
		}
	}
	return out
}
