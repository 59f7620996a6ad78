// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func TestTestsShareOneAPI(t *testing.T) {
	a := Start(t)
	if os.Getenv(kubeconfigVariable) == "" && Start(t) != a {
		t.Error("a second Start returned another API")
	}
	ns := a.Namespace(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if _, err := a.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Errorf("create a pod in the new namespace: %v", err)
	}
}

func TestKubectl(t *testing.T) {
	a := Start(t)
	ns := a.Namespace(t)
	stdout, stderr, err := a.Kubectl(t, "get", "namespace", ns, "-o", "name")
	if err != nil || stdout != "namespace/"+ns+"\n" {
		t.Errorf("kubectl get: got %q, %v (stderr %q), want namespace/%s", stdout, err, stderr, ns)
	}
	_, stderr, err = a.Kubectl(t, "get", "namespace", ns+"-not")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr, "NotFound") {
		t.Errorf("kubectl get of nothing: got %v, stderr %q, want exit code 1 and NotFound", err, stderr)
	}
}

func TestNodeCredentials(t *testing.T) {
	a := Start(t)
	t.Run("made", func(t *testing.T) {
		node := a.NodeName(t)
		checkNode(t, node, a.NodeCredentials(t, node, "node.example"))
	})
	t.Run("requested", func(t *testing.T) {
		node, dir := a.NodeName(t), t.TempDir()
		c := NodeCredentials{Kubeconfig: dir + "/kubeconfig", CertFile: dir + "/crt", KeyFile: dir + "/key", CAFile: a.CAFile}
		a.requestCredentials(t, node, []string{"node.example"}, c)
		checkNode(t, node, c)
	})
}

// checkNode checks that the credentials are valid for this node and for no other node.
func checkNode(t *testing.T, node string, c NodeCredentials) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	nodes := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("create the own node: %v", err)
	}
	_, err = nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node + "-not"}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("create another node: got %v, want Forbidden", err)
	}

	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(c.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for _, name := range []string{"localhost", "127.0.0.1", "node.example", node} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("verify the serving certificate for %s: %v", name, err)
		}
	}
}

func TestPrivateAPIFaults(t *testing.T) {
	a := New(t, Options{NoControllerManager: true, NoScheduler: true, APIServerArgs: []string{"--max-requests-inflight=50"}})
	ns := a.Namespace(t)
	get := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := a.Client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return err
	}
	if err := get(time.Minute); err != nil {
		t.Fatalf("get at first: %v", err)
	}
	a.Pause(t)
	for began := time.Now(); ; { // a process ends only some time after its signal
		err := get(200 * time.Millisecond)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("get from a paused API server: got %v, want a time-out", err)
		}
	}
	a.Resume(t)
	if err := get(time.Minute); err != nil {
		t.Errorf("get after the pause: %v", err)
	}
	for name, end := range map[string]func(testing.TB){"stop": a.Stop, "kill": a.Kill} {
		end(t)
		if err := get(time.Minute); err == nil {
			t.Errorf("get after %s: got an answer, want none", name)
		}
		a.Restart(t)
		if err := get(time.Minute); err != nil {
			t.Errorf("get after %s and restart: %v", name, err)
		}
	}
}

func TestSnapshot(t *testing.T) {
	a := New(t, Options{NoControllerManager: true, NoScheduler: true})
	before := a.Namespace(t)
	restore := a.Snapshot(t)
	after := a.Namespace(t)
	restore()
	if _, err := a.Client.CoreV1().Namespaces().Get(t.Context(), before, metav1.GetOptions{}); err != nil {
		t.Errorf("get what was there at the snapshot: %v", err)
	}
	if _, err := a.Client.CoreV1().Namespaces().Get(t.Context(), after, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get what was made after the snapshot: got %v, want NotFound", err)
	}
}

func TestWrongFlagIsExplained(t *testing.T) {
	c := &cluster{binary: requireBinary(t), base: t.TempDir(), name: privateName, args: []string{"--apiserver-arg=--bogus"}}
	_, err := c.openCluster()
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --bogus") {
		t.Errorf("got %v, want the API server's complaint about --bogus", err)
	}
}

func TestSharedAPIRefusesFaults(t *testing.T) {
	r := &recorder{TB: t}
	r.run(func() { (&API{cluster: &cluster{name: "vk-testapi-1"}}).Kill(r) })
	if !slices.ContainsFunc(r.fatal, func(s string) bool { return strings.Contains(s, "shared") }) {
		t.Errorf("got %q, want a refusal", r.fatal)
	}
}
