// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// trusting is a provider that requests certificates.
type trusting struct {
	notifying
	got *trusted
}

type trusted struct {
	bundles      node.PodTrustBundles
	certificates node.PodCertificates
}

func (p trusting) UsePodTrustBundles(b node.PodTrustBundles) { p.got.bundles = b }

func (p trusting) UsePodCertificates(c node.PodCertificates) { p.got.certificates = c }

func certificatesResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: name}
}

// authority signs certificates, beginning with its own.
type authority struct {
	key  *ecdsa.PrivateKey
	self *x509.Certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{key: key, self: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(48 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}}
	return a
}

func (a authority) sign(t *testing.T, template *x509.Certificate, public any) string {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, a.self, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

// TestCertificatesOfPods: with a present version of the API server, a node that has only its own identity gets
// the certificates of its pods.
func TestCertificatesOfPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asNode()
	got := &trusted{}
	w.provider = func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return trusting{notifying{polled{Backend: w.backend, changed: w.changed}}, got}, nil, nil
	}
	w.start()
	admin, err := dynamic.NewForConfig(w.api.Config)
	if err != nil {
		t.Fatal(err)
	}
	ca, signer := newAuthority(t), "signer.example/"+w.namespace
	root := ca.sign(t, ca.self, ca.key.Public())
	bundle := &corev1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}, Path: "ca.pem"}
	single := &corev1.ClusterTrustBundleProjection{Name: ptr.To(w.namespace), Path: "single.pem"}
	wish := &corev1.PodCertificateProjection{SignerName: signer, KeyType: "ECDSAP384", CredentialBundlePath: "both.pem",
		MaxExpirationSeconds: ptr.To[int32](7200), UserAnnotations: map[string]string{"signer.example/who": "me"}}
	pod := w.pod("web")
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ClusterTrustBundle: bundle}, {ClusterTrustBundle: single}, {PodCertificate: wish},
	}}}}}
	pod = w.startPod(pod)

	_, err = got.bundles.TrustBundle(t.Context(), pod, bundle)
	if err == nil || err.Error() != "combination of signerName and labelSelector matched zero ClusterTrustBundles" {
		t.Errorf("no bundle of the signer: %v", err)
	}
	if _, err = got.bundles.TrustBundle(t.Context(), pod, single); err == nil || !strings.Contains(err.Error(), `"`+w.namespace+`" not found`) {
		t.Errorf("no bundle of the name: %v", err)
	}
	for name, spec := range map[string]map[string]any{
		strings.ReplaceAll(signer, "/", ":") + ":v1": {"signerName": signer, "trustBundle": "# ours\n" + root},
		w.namespace: {"trustBundle": root},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle", "spec": spec}}
		object.SetName(name)
		object.SetLabels(map[string]string{"env": "test"})
		bundles := admin.Resource(certificatesResource("clustertrustbundles"))
		if _, err := bundles.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := bundles.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	for _, source := range []*corev1.ClusterTrustBundleProjection{bundle, single} {
		var last []byte
		w.poll("the bundle is seen", func() bool {
			last, err = got.bundles.TrustBundle(t.Context(), pod, source)
			return err == nil
		})
		if string(last) != root {
			t.Errorf("got %q, want the certificate alone", last)
		}
	}

	// The API server judges the request, and the node learns the decision of the signer.
	if _, err := got.certificates.Certificate(t.Context(), pod, wish, nil); err == nil || err.Error() != "credential bundle is not issued yet" {
		t.Fatalf("before the signer decides: %v", err)
	}
	w.issue(admin, ca)
	made, err := got.certificates.Certificate(t.Context(), pod, wish, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(made.Chain, made.Key)
	if err != nil || pair.Leaf.Subject.CommonName != string(pod.UID) || pair.Leaf.PublicKey.(*ecdsa.PublicKey).Curve != elliptic.P384() {
		t.Errorf("%v: want the certificate of the pod with its key", err)
	}
	if again, err := got.certificates.Certificate(t.Context(), pod, wish, nil); err != nil || !bytes.Equal(again.Key, made.Key) {
		t.Errorf("another question has another answer: %v", err)
	}
	w.remove("web", atOnce())
	w.awaitEmptyBackend()
	w.poll("a pod that is gone gets no certificate", func() bool { // the backend is empty before the node has seen that
		_, err := got.certificates.Certificate(t.Context(), pod, wish, nil)
		return errdefs.IsNotFound(err)
	})
	if _, err := got.bundles.TrustBundle(t.Context(), pod, bundle); !errdefs.IsNotFound(err) {
		t.Errorf("a pod that is gone gets a bundle: %v", err)
	}
	for _, r := range w.requests.refusals() {
		if r.method != http.MethodGet {
			t.Errorf("the API server does not allow: %v", r)
		}
	}
	w.allowed()
}

// poll waits until done returns true.
func (w *world) poll(what string, done func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		w.Fatalf("wait until %s: %v", what, err)
	}
}

// issue signs the only request in the namespace.
func (w *world) issue(admin dynamic.Interface, ca authority) {
	w.Helper()
	requests := admin.Resource(certificatesResource("podcertificaterequests")).Namespace(w.namespace)
	list, err := requests.List(w.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		w.Fatalf("there are %d requests, %v: want one", len(list.Items), err)
	}
	o := &list.Items[0]
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	raw, err := base64.StdEncoding.DecodeString(spec["stubPKCS10Request"].(string))
	if err != nil {
		w.Fatal(err)
	}
	csr, err := x509.ParseCertificateRequest(raw)
	if err != nil {
		w.Fatal(err)
	}
	if spec["maxExpirationSeconds"] != int64(7200) || spec["unverifiedUserAnnotations"].(map[string]any)["signer.example/who"] != "me" {
		w.Errorf("asked with %v, want what the volume says", spec)
	}
	from := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: spec["podUID"].(string)}, NotBefore: from, NotAfter: from.Add(2 * time.Hour)}
	at := func(t time.Time) string { return t.Format(time.RFC3339) }
	o.Object["status"] = map[string]any{
		"certificateChain": ca.sign(w.T, leaf, csr.PublicKey), "notBefore": at(leaf.NotBefore), "notAfter": at(leaf.NotAfter), "beginRefreshAt": at(from.Add(time.Hour)),
		"conditions": []any{map[string]any{"type": "Issued", "status": "True", "reason": "Test", "message": "for this test", "lastTransitionTime": at(from)}},
	}
	if _, err := requests.UpdateStatus(w.Context(), o, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}
