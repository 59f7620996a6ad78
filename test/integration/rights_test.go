// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/rbac"
)

// asServiceAccount runs the node with the rights of the shipped manifests. A policy limits them to the node's
// own objects.
func (w *world) asServiceAccount() rbac.Subject {
	w.Helper()
	s := rbac.Subject{Name: w.nodeName, Namespace: w.namespace, Nodes: []string{w.nodeName}}
	objects := rbac.Objects(s, rbac.ShippedFeatures()...)
	w.apply(objects)
	w.apply(rbac.AdmissionPolicy(s))
	for _, o := range objects {
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			w.api.AwaitRights(w.T, rbac.User(s), "", role.Rules)
		case *rbacv1.Role:
			w.api.AwaitRights(w.T, rbac.User(s), role.Namespace, role.Rules)
		}
	}
	token, err := w.client().CoreV1().ServiceAccounts(s.Namespace).CreateToken(w.Context(), s.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.config = bearing(w.api.Config, token.Status.Token)
	w.config.QPS = -1
	return s
}

// apply creates the objects and deletes them at the end of the test.
func (w *world) apply(objects []runtime.Object) {
	w.Helper()
	client, err := dynamic.NewForConfig(w.api.Config)
	if err != nil {
		w.Fatal(err)
	}
	for _, o := range objects {
		u := unstructuredOf(w.T, o)
		kind := u.GroupVersionKind()
		resource := strings.ToLower(kind.Kind) + "s"
		switch kind.Kind {
		case "ValidatingAdmissionPolicy":
			resource = "validatingadmissionpolicies"
		case "StorageClass":
			resource = "storageclasses"
		}
		var to dynamic.ResourceInterface = client.Resource(kind.GroupVersion().WithResource(resource))
		if ns := u.GetNamespace(); ns != "" {
			to = client.Resource(kind.GroupVersion().WithResource(resource)).Namespace(ns)
		}
		if _, err := to.Create(w.Context(), u, metav1.CreateOptions{}); err != nil {
			w.Fatalf("create %s %s: %v", kind.Kind, u.GetName(), err)
		}
		w.Cleanup(func() {
			_ = to.Delete(context.WithoutCancel(w.Context()), u.GetName(), metav1.DeleteOptions{}) // it may be gone with its namespace
		})
	}
}

// done is a verb on a resource of a group. namespace is set for leases only.
type done struct{ verb, group, resource, namespace string }

func doneIn(e auditv1.Event) done {
	d := done{verb: e.Verb, group: e.ObjectRef.APIGroup, resource: e.ObjectRef.Resource}
	if e.ObjectRef.Subresource != "" {
		d.resource += "/" + e.ObjectRef.Subresource
	}
	if d.resource == "leases" {
		d.namespace = e.ObjectRef.Namespace
	}
	return d
}

func TestSecurityC3TheClusterRoleIsWhatANodeUses(t *testing.T) {
	t.Parallel()
	w, _ := newNeedyWorld(t)
	s := w.asServiceAccount()
	w.serve()
	daemon := w.start()
	w.askServer()
	w.needyLives(daemon)

	shipped, unseen := map[done]bool{}, map[done]string{}
	for _, r := range rbac.All(rbac.ShippedFeatures()...) {
		for _, verb := range r.Verbs {
			d := done{verb, r.Group, r.Resource, r.Namespace}
			shipped[d], unseen[d] = true, r.Unseen
		}
	}
	used := map[done]bool{}
	w.auditUntil(rbac.User(s), "the audit log has all that was done", func(events []auditv1.Event) bool {
		for _, e := range events {
			if e.ObjectRef != nil {
				used[doneIn(e)] = true
			}
		}
		return about(events, "delete pods") && about(events, "create events")
	})
	for _, e := range w.api.Audit(t, rbac.User(s)) {
		if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("refused: %s %s: %s", e.Verb, e.RequestURI, e.ResponseStatus.Message)
		}
	}
	for d := range used {
		if !shipped[d] && !strings.HasPrefix(d.resource, "selfsubject") { // every user may do this
			t.Errorf("used, and not shipped: %+v", d)
		}
	}
	for d := range shipped {
		if !used[d] && unseen[d] == "" {
			t.Errorf("shipped, and neither used nor documented as unseen: %+v", d)
		}
	}
}

// TestSecurityC3ThePolicyPinsTheServiceAccountToItsNode: the policy forbids requests about other nodes. The
// ClusterRole allows these requests, because RBAC cannot distinguish nodes.
func TestSecurityC3ThePolicyPinsTheServiceAccountToItsNode(t *testing.T) {
	t.Parallel()
	w, _ := newNeedyWorld(t)
	w.asServiceAccount()
	client := kubernetes.NewForConfigOrDie(rest.CopyConfig(w.config))
	foreign := w.pod("foreign")
	foreign.Spec.NodeName, foreign.Spec.NodeSelector = "another", nil
	w.create(foreign)
	pods := client.CoreV1().Pods(w.namespace)
	for what, do := range map[string]func(context.Context) error{
		"write a status": func(ctx context.Context) error {
			return second(pods.Patch(ctx, "foreign", types.MergePatchType, []byte(`{"status":{"reason":"Stolen"}}`), metav1.PatchOptions{}, "status"))
		},
		"register another node": func(ctx context.Context) error {
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			return second(client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodeName + "-not"}}, dry))
		},
		"get a token that is bound to nothing": func(ctx context.Context) error {
			return second(client.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		},
		"get a token for a pod of another node": func(ctx context.Context) error {
			bound := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "foreign"}}}
			return second(client.CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, "default", bound, metav1.CreateOptions{}))
		},
		"delete a pod": func(ctx context.Context) error {
			return pods.Delete(ctx, "foreign", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
	} {
		var err error
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); { // the policy takes effect after a moment
			if err = do(t.Context()); apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		if err == nil || !strings.Contains(err.Error(), "this ServiceAccount") {
			t.Errorf("%s: got %v, want the policy's refusal", what, err)
		}
	}
}

// TestReadsPastTheNode shows the reads that the policy cannot prevent. The documents warn of them.
func TestReadsPastTheNode(t *testing.T) {
	t.Parallel()
	w, _ := newNeedyWorld(t)
	s := w.asServiceAccount()
	w.needyPod("web")
	secrets := kubernetes.NewForConfigOrDie(rest.CopyConfig(w.config)).CoreV1().Secrets(s.Namespace)
	if _, err := secrets.Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Errorf("read a Secret that no pod of the node names: %v; the documents say that this is possible", err)
	}
	if _, err := secrets.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list Secrets: got %v, want a refusal", err)
	}
}

func unstructuredOf(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}
