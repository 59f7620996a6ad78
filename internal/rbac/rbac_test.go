// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestSecurityC3ManifestsAreThoseOfTheTable(t *testing.T) {
	rbac, err := YAML(Shipped, ShippedFeatures()...)
	if err != nil {
		t.Fatal(err)
	}
	admission, err := AdmissionPolicyYAML(Shipped)
	if err != nil {
		t.Fatal(err)
	}
	provisioner, err := ProvisionerYAML(Shipped)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"rbac.yaml": rbac, "admission.yaml": admission, "provisioner.yaml": provisioner} {
		got, err := os.ReadFile("../../deploy/manifests/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("deploy/manifests/%s is not that of the table: run `go run ./internal/rbac/write`", name)
		}
	}
}

func TestSecurityC3NoRightIsMoreThanItSays(t *testing.T) {
	known := []string{"create", "get", "list", "watch", "update", "patch", "delete"}
	for _, r := range All(Every()...) {
		text := strings.Join(append([]string{r.Group, r.Resource}, r.Verbs...), " ")
		if strings.Contains(text, "*") || r.Resource == "" || len(r.Verbs) == 0 || r.Why == "" {
			t.Errorf("%+v: want verbs, a resource and a reason, and no wildcard", r)
		}
		for _, verb := range r.Verbs {
			if !slices.Contains(known, verb) {
				t.Errorf("%+v: %s is none of %v", r, verb, known)
			}
		}
		switch {
		case (r.Resource == "secrets" || r.Resource == "configmaps") && !slices.Equal(r.Verbs, []string{"get"}):
			t.Errorf("%+v: want get only", r)
		case r.Own && slices.Contains(r.Verbs, "create"):
			t.Errorf("%+v: RBAC cannot limit create to a name", r)
		case r.Resource == "leases" && r.Namespace != leases:
			t.Errorf("%+v: want the namespace of the leases of nodes only", r)
		}
	}
}

func TestFeatures(t *testing.T) {
	for _, r := range All() {
		if r.Needs != "" {
			t.Errorf("a plain node has a right for %s: %+v", r.Needs, r)
		}
	}
	if n := len(All(Every()...)); n != len(table) {
		t.Errorf("all features have %d rights of %d", n, len(table))
	}
}

func TestReviews(t *testing.T) {
	for _, r := range All() {
		reviews := r.Reviews("n")
		if len(reviews) != len(r.Verbs) {
			t.Errorf("%+v: %d reviews", r, len(reviews))
		}
		for i, review := range reviews {
			a := review.Spec.ResourceAttributes
			if a.Verb != r.Verbs[i] || strings.Contains(a.Resource, "/") || r.Own != (a.Name == "n") || a.Namespace != r.Namespace {
				t.Errorf("%+v: review %+v", r, a)
			}
		}
	}
}
