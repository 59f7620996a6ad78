// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// credentialID is the key under which the API server reports the certificate of a request.
const credentialID = "authentication.kubernetes.io/credential-id"

// TestSecurityB4TenRotationsLoseNoRequest: the client certificate of a node is replaced ten times while its
// clients are busy. Each certificate is used, no request fails, and a watch goes on.
func TestSecurityB4TenRotationsLoseNoRequest(t *testing.T) {
	const rotations = 10
	cluster := testapi.New(t, testapi.Options{APIServerArgs: []string{"--enable-bootstrap-token-auth=true"}, NoScheduler: true})
	b := newBootstrapping(t)
	b.allowedBy(cluster)
	renew := func(*x509.Certificate) time.Time { return time.Now().Add(600 * time.Millisecond) } // the files are checked once a second
	n, err := b.node(func(cfg *NodeConfig) error { cfg.renewCertificate = renew; return nil })
	if err != nil {
		t.Fatal(err)
	}
	lines := &lineLogger{}
	ctx, stop := context.WithCancel(lines.into(context.Background()))
	go func() { _ = n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-n.Done()
		if err := n.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want that the context was cancelled", err)
		}
	})
	if err := n.WaitReady(t.Context(), time.Minute); err != nil {
		t.Fatal(err, lines.text())
	}
	watch, err := n.clients.watches.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, "n1").String()})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	used, failed := ask(t, n.clients.main, rotations+1)
	for _, err := range failed {
		t.Errorf("a request failed: %v", err)
	}
	if used <= rotations {
		t.Errorf("%d certificates were used, want one more than %d rotations", used, rotations)
	}
	for open := true; open; {
		select {
		case _, more := <-watch.ResultChan():
			if !more {
				t.Fatal("the watch has ended")
			}
		default:
			open = false
		}
	}
	for line := range strings.Lines(lines.text()) {
		if strings.HasPrefix(line, "warn") && strings.Contains(line, "certificate") || strings.HasPrefix(line, "error") {
			t.Errorf("the node said: %s", line)
		}
	}
	requests, err := cluster.Client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]int{}
	for _, request := range requests.Items {
		users[request.Spec.Username]++
	}
	if users["system:bootstrap:abcdef"] != 1 || users["system:node:n1"] < rotations {
		t.Errorf("requests by user: got %v, want one of the token and %d of the node", users, rotations)
	}
}

// ask sends requests, several at a time, until they have used want certificates. It returns the number of used
// certificates, and the errors.
func ask(t *testing.T, client kubernetes.Interface, want int) (int, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	used, failed := map[string]bool{}, []error(nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				// The request does not use ctx, because the end of ctx would be an error of the request.
				who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
				mu.Lock()
				if err != nil {
					failed = append(failed, err)
				} else {
					used[strings.Join(who.Status.UserInfo.Extra[credentialID], " ")] = true
				}
				if len(used) >= want || len(failed) > 10 {
					cancel()
				}
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	wg.Wait()
	return len(used), failed
}

// allowedBy allows the token of b to become a node of the cluster, and allows nodes to renew their certificates,
// as kubeadm does.
func (b *bootstrapping) allowedBy(cluster *testapi.API) {
	b.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: cluster.Config.Host, CertificateAuthority: cluster.CAFile}
	c.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: "abcdef.0123456789abcdef"}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	c.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*c, b.bootstrap); err != nil {
		b.Fatal(err)
	}
	cluster.AllowBootstrap(b.T, "abcdef", "0123456789abcdef")
}
