// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/retry"
)

// requestCredentials asks a foreign cluster, whose authority's key is not available here, to sign a node's
// certificates, and approves the requests as the cluster's administrator.
func (a *API) requestCredentials(t testing.TB, node string, sans []string, c NodeCredentials) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), namespaceTimeout)
	defer cancel()
	cert, key, err := a.requestCertificate(ctx, node, nil, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth)
	if err != nil {
		t.Fatalf("request client certificate of node %s: %v", node, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: a.Config.Host, CertificateAuthority: a.CAFile}
	config.AuthInfos["node"] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "node"}
	config.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*config, c.Kubeconfig); err != nil {
		t.Fatalf("write kubeconfig of node %s: %v", node, err)
	}

	cert, key, err = a.requestCertificate(ctx, node, sans, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth)
	if err != nil {
		t.Fatalf("request serving certificate of node %s: %v", node, err)
	}
	for path, data := range map[string][]byte{c.CertFile: cert, c.KeyFile: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatalf("write serving certificate of node %s: %v", node, err)
		}
	}
}

func (a *API) requestCertificate(ctx context.Context, node string, sans []string, signer string, usage certificatesv1.KeyUsage) (cert, key []byte, err error) {
	request, key, err := nodeRequest(node, sans, usage == certificatesv1.UsageServerAuth)
	if err != nil {
		return nil, nil, err
	}
	requests := a.Client.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "testapi-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("create signing request: %w", err)
	}
	// The controller manager approves some requests by itself, at the same time.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if csr, err = requests.Get(ctx, csr.Name, metav1.GetOptions{}); err != nil || isApproved(csr) {
			return err
		}
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
		})
		_, err := requests.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("approve signing request: %w", err)
	}
	w, err := requests.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", csr.Name).String()})
	if err != nil {
		return nil, nil, fmt.Errorf("watch signing request: %w", err)
	}
	err = awaitEvent(ctx, w, func(e watch.Event) bool {
		if signed, ok := e.Object.(*certificatesv1.CertificateSigningRequest); ok {
			cert = signed.Status.Certificate
		}
		return len(cert) > 0
	})
	if err != nil {
		return nil, nil, fmt.Errorf("wait for certificate: %w", err)
	}
	return cert, key, nil
}

// nodeRequest makes a key and a request with the identity of a node, as demanded by the signers.
func nodeRequest(node string, sans []string, serving bool) (request, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	template := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
	}
	if serving {
		template.DNSNames = []string{"localhost", node}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		for _, san := range sans {
			if ip := net.ParseIP(san); ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			} else {
				template.DNSNames = append(template.DNSNames, san)
			}
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, private)
	if err != nil {
		return nil, nil, fmt.Errorf("sign request: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}

func isApproved(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
}
