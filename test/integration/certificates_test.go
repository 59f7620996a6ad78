// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// TestSecurityB1ServingCertificateOfTheCluster: the cluster's signer gives the node its serving certificate. The
// API server verifies this certificate and then reads logs from the node. The test denies the first request (row
// B3).
func TestSecurityB1ServingCertificateOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asNode()
	w.provider = func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return talking{notifying{polled{Backend: w.backend, changed: w.changed}}}, nil, nil
	}
	mux := http.NewServeMux()
	w.opts = append(w.opts,
		nodeutil.WithServingCertificateRequests(t.TempDir()), nodeutil.WithClientCAFile(w.api.CAFile), nodeutil.AttachProviderRoutes(mux),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.Handler, cfg.HTTPListenAddr = mux, "127.0.0.1:0"
			cfg.NodeSpec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
			return nil
		})
	w.start()
	pending := func(node *corev1.Node) (found corev1.NodeCondition) {
		for _, c := range node.Status.Conditions {
			if c.Type == nodeutil.ServingCertificatePending {
				found = c
			}
		}
		return found
	}

	first := w.awaitRequest("")
	w.decide(first, certificatesv1.CertificateDenied)
	told := w.awaitNode("says that its request was denied", func(n *corev1.Node) bool { return pending(n).Reason == "Denied" })
	if message := pending(told).Message; !strings.Contains(message, first.Name) || !strings.Contains(message, "not in this test") {
		t.Errorf("condition: got %q, want the name of the request and why", message)
	}
	w.decide(w.awaitRequest(first.Name), certificatesv1.CertificateApproved)
	w.awaitNode("has its certificate", func(n *corev1.Node) bool { return pending(n).Type == "" })

	w.startPod(w.pod("web"))
	if text, err := w.pods().GetLogs("web", &corev1.PodLogOptions{}).DoRaw(t.Context()); err != nil || string(text) != "hello" {
		t.Errorf("logs through the API server: got %q, error %v", text, err)
	}
	w.allowed()
}

// talking is a provider whose containers say hello.
type talking struct{ notifying }

func (talking) GetContainerLogs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("hello")), nil
}

// awaitRequest waits for the node's request for a serving certificate. It ignores the request named other.
func (w *world) awaitRequest(other string) *certificatesv1.CertificateSigningRequest {
	w.Helper()
	q := query{client: w.client().CertificatesV1().RESTClient(), resource: "certificatesigningrequests"}
	var found *certificatesv1.CertificateSigningRequest
	await(w.T, q, &certificatesv1.CertificateSigningRequest{}, "the node has asked", func(all []*certificatesv1.CertificateSigningRequest) bool {
		for _, csr := range all {
			if csr.Spec.Username == "system:node:"+w.nodeName && csr.Spec.SignerName == certificatesv1.KubeletServingSignerName && csr.Name != other {
				found = csr
			}
		}
		return found != nil
	})
	return found
}

func (w *world) decide(csr *certificatesv1.CertificateSigningRequest, as certificatesv1.RequestConditionType) {
	w.Helper()
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: as, Status: corev1.ConditionTrue, Reason: "Test", Message: "not in this test",
	})
	if _, err := w.client().CertificatesV1().CertificateSigningRequests().UpdateApproval(w.Context(), csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		w.Fatalf("%s request %s: %v", as, csr.Name, err)
	}
}

// TestSecurityB4TokenBecomesTheNode: a node with only a bootstrap token gets the identity system:node:NAME. It
// renews its certificate with this identity, and starts again without the token.
func TestSecurityB4TokenBecomesTheNode(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, testapi.New(t, testapi.Options{
		APIServerArgs:         []string{"--enable-bootstrap-token-auth=true"},
		ControllerManagerArgs: []string{"--cluster-signing-duration=20s"},
		NoScheduler:           true,
	}))
	dir := t.TempDir()
	bootstrap, kubeconfig := filepath.Join(dir, "bootstrap"), filepath.Join(dir, "own", "kubeconfig")
	w.api.AllowBootstrap(w.T, tokenID, tokenSecret)
	w.writeBootstrapKubeconfig(bootstrap)
	w.opts = append(w.opts, nodeutil.WithTLSBootstrap(bootstrap, filepath.Join(dir, "pki")), func(cfg *nodeutil.NodeConfig) error {
		cfg.KubeconfigPath = kubeconfig
		delete(cfg.NodeSpec.Labels, restrictedLabel)
		return nil
	})
	w.bootstraps = true
	daemon := w.start()
	if err := os.Remove(bootstrap); err != nil { // from now on the node has only its own certificate
		t.Fatal(err)
	}
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig that was written: got %v, error %v, want mode 0600", info, err)
	}
	itself, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	before := certificateOf(t, itself)
	for end := time.Now().Add(patience); certificateOf(t, itself) == before; {
		if time.Now().After(end) {
			t.Fatal("the certificate was not renewed")
		}
		<-time.After(50 * time.Millisecond)
	}
	daemon.stop()
	w.start()
	pod := w.pod("web")
	pod.Spec.NodeName = w.nodeName
	w.startPod(pod)
	users := map[string]int{}
	requests, err := w.client().CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, csr := range requests.Items {
		users[csr.Spec.Username]++
	}
	if users["system:bootstrap:"+tokenID] != 1 || users["system:node:"+w.nodeName] == 0 {
		t.Errorf("requests by user: got %v, want one of the token and the others of the node", users)
	}
}

// certificateOf returns the present content of the certificate file.
func certificateOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	pem, err := os.ReadFile(config.CertFile)
	if err != nil && !os.IsNotExist(err) { // it is being replaced
		t.Fatal(err)
	}
	return string(pem)
}

const tokenID, tokenSecret = "abcdef", "0123456789abcdef"

func (w *world) writeBootstrapKubeconfig(path string) {
	w.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: w.api.Config.Host, CertificateAuthority: w.api.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: tokenID + "." + tokenSecret}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		w.Fatal(err)
	}
}
