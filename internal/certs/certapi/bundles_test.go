// SPDX-License-Identifier: Apache-2.0

package certapi_test

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const trust = "clustertrustbundles"

func bundleOf(name, signer, pem string) map[string]any {
	return map[string]any{"metadata": map[string]string{"name": name}, "spec": map[string]string{"signerName": signer, "trustBundle": pem}}
}

func TestTheBestVersionThatIsServedIsUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		served map[string][]string
		want   string
	}{
		"both":     {map[string][]string{"v1": {trust}, "v1beta1": {trust}}, "GET v1/"},
		"old":      {map[string][]string{"v1": nil, "v1beta1": {trust}}, "GET v1beta1/"},
		"old only": {map[string][]string{"v1beta1": {trust}}, "GET v1beta1/"},
	} {
		t.Run(name, func(t *testing.T) {
			items := []any{bundleOf("other", "", "x"), bundleOf("b", "", "the certificates")}
			s := &server{served: tt.served, lists: map[string]any{"v1/" + trust: items, "v1beta1/" + trust: items}}
			got, err := s.api(t).BundleNamed(t.Context(), "b")
			if err != nil || got == nil || got.Spec.TrustBundle != "the certificates" {
				t.Fatalf("got %+v, %v", got, err)
			}
			if asked := s.questions(); asked != tt.want+trust+" fieldSelector=metadata.name%3Db" {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

func TestABundleThatIsNotThereIsNoError(t *testing.T) {
	s := &server{served: map[string][]string{"v1": {trust}}}
	if got, err := s.api(t).BundleNamed(t.Context(), "b"); got != nil || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBundlesOfASigner(t *testing.T) {
	s := &server{served: map[string][]string{"v1": {trust}}, lists: map[string]any{
		"v1/" + trust: []any{bundleOf("a", "s.example/x", "1"), bundleOf("b", "other.example/x", "2"), bundleOf("c", "s.example/x", "3")},
	}}
	api := s.api(t)
	got, err := api.BundlesOf(t.Context(), "s.example/x", "env=prod")
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[1].Name != "c" {
		t.Errorf("got %+v, %v: want those of the signer only", got, err)
	}
	if asked := s.questions(); asked != "GET v1/"+trust+" fieldSelector=spec.signerName%3Ds.example%2Fx&labelSelector=env%3Dprod" {
		t.Errorf("asked %q", asked)
	}
}

// TestWhatIsNotServedIsSaidAndLookedForAgain: a kind that the cluster does not serve is an error with the kind's name. The next request checks again,
// because a cluster may be updated while the node runs.
func TestWhatIsNotServedIsSaidAndLookedForAgain(t *testing.T) {
	s := &server{served: map[string][]string{"v1": nil}}
	api := s.api(t)
	_, err := api.BundleNamed(t.Context(), "b")
	if err == nil || !strings.Contains(err.Error(), "does not serve clustertrustbundles.certificates.k8s.io in v1 or v1beta1") || apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	s.serve(map[string][]string{"v1": nil, "v1beta1": {trust}})
	if _, err := api.BundleNamed(t.Context(), "b"); err != nil {
		t.Errorf("it is served now: %v", err)
	}
	s.serve(map[string][]string{"v1": {trust}})
	if _, err := api.BundleNamed(t.Context(), "b"); err == nil {
		t.Error("the version that is gone has an answer")
	}
	if _, err := api.BundleNamed(t.Context(), "b"); err != nil {
		t.Errorf("the newer version is not found: %v", err)
	}
}

func TestARefusalIsAnErrorOfItsKind(t *testing.T) {
	s := &server{served: map[string][]string{"v1": {trust}}, status: http.StatusForbidden}
	if _, err := s.api(t).BundleNamed(t.Context(), "b"); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}
