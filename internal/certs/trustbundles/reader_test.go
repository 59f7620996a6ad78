// SPDX-License-Identifier: Apache-2.0

package trustbundles

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
)

// cluster has bundles.
type cluster struct {
	named  map[string]string   // PEM by name
	signed map[string][]string // PEMs by signer and selector
	asked  int
	err    error
}

func (c *cluster) BundleNamed(_ context.Context, name string) (*certapi.Bundle, error) {
	c.asked++
	text, ok := c.named[name]
	if !ok || c.err != nil {
		return nil, c.err
	}
	return &bundlesOf(text)[0], nil
}

func (c *cluster) BundlesOf(_ context.Context, signer, labels string) ([]certapi.Bundle, error) {
	c.asked++
	return bundlesOf(c.signed[signer+" "+labels]...), c.err
}

func bundlesOf(texts ...string) (out []certapi.Bundle) {
	for _, text := range texts {
		var b certapi.Bundle
		b.Spec.TrustBundle = text
		out = append(out, b)
	}
	return out
}

func block(kind, data string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(data)}))
}

func named(name string, optional bool) *corev1.ClusterTrustBundleProjection {
	return &corev1.ClusterTrustBundleProjection{Name: &name, Optional: &optional}
}

func signed(signer string, selector *metav1.LabelSelector) *corev1.ClusterTrustBundleProjection {
	return &corev1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: selector}
}

func TestCertificatesAreThereOnceAndNothingElse(t *testing.T) {
	a, b, c := block("CERTIFICATE", "a"), block("CERTIFICATE", "b"), block("CERTIFICATE", "c")
	withHeader := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"Who": "me"}, Bytes: []byte("a")}))
	w := &cluster{signed: map[string][]string{"s ": {"# comment\n" + a + "between\n" + b, block("PRIVATE KEY", "no") + withHeader + c}}}
	got, err := New(w).Read(t.Context(), signed("s", &metav1.LabelSelector{}))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.SplitAfter(string(got), "-----END CERTIFICATE-----\n")
	slices.Sort(blocks)
	want := []string{"", a, b, c}
	slices.Sort(want)
	if !slices.Equal(blocks, want) {
		t.Errorf("got %q, want each of %q once", blocks, want)
	}
	slices.Reverse(w.signed["s "])
	if again, err := New(w).Read(t.Context(), signed("s", &metav1.LabelSelector{})); err != nil || string(again) != string(got) {
		t.Errorf("other order of bundles: got %q, %v, want the same as before", again, err)
	}
}

func TestWhatIsSelected(t *testing.T) {
	w := &cluster{named: map[string]string{"n": block("CERTIFICATE", "by name")}, signed: map[string][]string{
		"s ": {block("CERTIFICATE", "all")}, "s env=prod": {block("CERTIFICATE", "labeled")},
	}}
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	none := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
	for name, tt := range map[string]struct {
		source *corev1.ClusterTrustBundleProjection
		want   string
		err    string
	}{
		"a name":                       {source: named("n", false), want: "by name"},
		"no such name":                 {source: named("x", false), err: `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "x" not found`},
		"no such name, optional":       {source: named("x", true)},
		"labels":                       {source: signed("s", prod), want: "labeled"},
		"an empty selector is all":     {source: signed("s", &metav1.LabelSelector{}), want: "all"},
		"no selector is nothing":       {source: signed("s", nil), err: ErrNothing.Error()},
		"no bundle of these labels":    {source: signed("s", none), err: ErrNothing.Error()},
		"no bundle of the signer":      {source: signed("x", prod), err: ErrNothing.Error()},
		"nothing at all":               {source: &corev1.ClusterTrustBundleProjection{}, err: "ClusterTrustBundle projection requires either name or signerName to be set"},
		"no selector, optional":        {source: &corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s"), Optional: ptr.To(true)}},
		"no bundle of labels,optional": {source: &corev1.ClusterTrustBundleProjection{SignerName: ptr.To("s"), LabelSelector: none, Optional: ptr.To(true)}},
	} {
		got, err := New(w).Read(t.Context(), tt.source)
		want := tt.want
		if want != "" {
			want = block("CERTIFICATE", want)
		}
		if string(got) != want || tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if _, err := New(w).Read(t.Context(), named("x", false)); !apierrors.IsNotFound(err) {
		t.Errorf("%v has lost its kind", err)
	}
}

func TestManyPodsAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &cluster{named: map[string]string{"n": block("CERTIFICATE", "1")}}
		r := New(w)
		for range 100 {
			if _, err := r.Read(t.Context(), named("n", false)); err != nil {
				t.Fatal(err)
			}
		}
		if w.asked != 1 {
			t.Errorf("the API server was asked %d times", w.asked)
		}
		w.named["n"] = block("CERTIFICATE", "2")
		time.Sleep(keep)
		if got, err := r.Read(t.Context(), named("n", false)); string(got) != block("CERTIFICATE", "2") || err != nil {
			t.Errorf("after %s: got %q, %v, want the change", keep, got, err)
		}
	})
}

func TestABundleThatComesIsSeenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &cluster{named: map[string]string{}}
		r := New(w)
		if _, err := r.Read(t.Context(), named("n", false)); !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		w.named["n"] = block("CERTIFICATE", "1")
		time.Sleep(keepNothing)
		if _, err := r.Read(t.Context(), named("n", false)); err != nil {
			t.Error(err)
		}
		delete(w.named, "n")
		time.Sleep(keep)
		if _, err := r.Read(t.Context(), named("n", false)); !apierrors.IsNotFound(err) {
			t.Errorf("a bundle that is gone: %v", err)
		}
	})
}

// TestSilenceIsNotAbsence: during an outage of the API server, running pods keep their certificates. A new pod
// does not start without its optional certificates because of the outage.
func TestSilenceIsNotAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &cluster{named: map[string]string{"n": block("CERTIFICATE", "1")}, err: errors.New("no answer")}
		r := New(w)
		if _, err := r.Read(t.Context(), named("n", true)); err == nil || !strings.Contains(err.Error(), "no answer") || apierrors.IsNotFound(err) {
			t.Errorf("before the first answer: %v", err)
		}
		w.err = nil
		if _, err := r.Read(t.Context(), named("n", true)); err != nil {
			t.Fatal(err)
		}
		w.err = errors.New("no answer")
		time.Sleep(time.Hour)
		asked := w.asked
		for range 10 {
			if got, err := r.Read(t.Context(), named("n", true)); string(got) != block("CERTIFICATE", "1") || err != nil {
				t.Errorf("in an outage: got %q, %v, want what was read last", got, err)
			}
		}
		if w.asked != asked+1 {
			t.Errorf("in an outage the API server was asked %d times, want once", w.asked-asked)
		}
	})
}

func TestWhatNobodyAsksForIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(&cluster{})
		for i := range 100 {
			if _, err := r.Read(t.Context(), named(fmt.Sprint(i), true)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(forgetAfter / 10)
		}
		if n := len(r.slots); n > 12 {
			t.Errorf("%d selections are remembered", n)
		}
	})
}
