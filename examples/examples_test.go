// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// build compiles all programs and returns their folder.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./nodeutil", "./polled")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the examples: %v\n%s", err, out)
	}
	return dir
}

func TestExamples(t *testing.T) {
	programs := build(t)
	api := testapi.Start(t)

	t.Run("polled", func(t *testing.T) {
		node := api.NodeName(t)
		run(t, filepath.Join(programs, "polled"), "-kubeconfig", api.KubeconfigPath, "-nodename", node)
		awaitReady(t, api, node)
		livePod(t, api, node, func(*corev1.Pod) {})
	})

	// This example joins as the node itself, with the permissions that the API server gives to nodes and no
	// others.
	t.Run("nodeutil", func(t *testing.T) {
		name := api.NodeName(t)
		own := api.NodeCredentials(t, name)
		run(t, filepath.Join(programs, "nodeutil"), "-kubeconfig", own.Kubeconfig, "-nodename", name,
			"-listen", "127.0.0.1:0", "-cert-file", own.CertFile, "-key-file", own.KeyFile, "-ca-file", own.CAFile)
		node := awaitReady(t, api, name)
		refuseStrangers(t, node)
		livePod(t, api, name, func(pod *corev1.Pod) {
			log, err := api.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
			if want := "hello from p/c\n"; err != nil || string(log) != want {
				t.Errorf("kubectl logs: got %q, %v; want %q", log, err, want)
			}
			out, stderr, err := api.Kubectl(t, "exec", "-n", pod.Namespace, pod.Name, "--", "one", "two")
			if err != nil || out != "one two\n" {
				t.Errorf("kubectl exec: got %q, %v: %s", out, err, stderr)
			}
		})
	})
}

// run starts a program. At the end of the test, it stops the program and checks the exit.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(program), err)
			}
		case <-time.After(6 * time.Second):
			_ = cmd.Process.Kill()
			t.Errorf("%s did not stop within 6 s and was killed: %v", filepath.Base(program), <-ended)
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", filepath.Base(program), output.String())
		}
	})
}

// livePod runs a pod on the node, calls use while the pod runs, and deletes the pod.
func livePod(t *testing.T, api *testapi.API, node string, use func(*corev1.Pod)) {
	t.Helper()
	pods := api.Client.CoreV1().Pods(api.Namespace(t))
	changes, err := pods.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example/image"}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod = await(t, "the pod to run", changes, func(e watch.EventType, p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning
	})
	use(pod)

	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the pod to be gone", changes, func(e watch.EventType, _ *corev1.Pod) bool { return e == watch.Deleted })
}

func awaitReady(t *testing.T, api *testapi.API, name string) *corev1.Node {
	t.Helper()
	// A watch without a resource version begins with the existing objects.
	changes, err := api.Client.CoreV1().Nodes().Watch(t.Context(),
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	return await(t, "the node to be ready", changes, func(_ watch.EventType, n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	})
}

// refuseStrangers checks that the node's server refuses requests without credentials.
func refuseStrangers(t *testing.T, node *corev1.Node) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // Who the server is does not matter here.
		DisableKeepAlives: true,
	}}
	url := fmt.Sprintf("https://127.0.0.1:%d/runningpods/", node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger gets %s, want 401", resp.Status)
	}
}

// await returns the first object of a watch for which good returns true.
func await[T any](t *testing.T, what string, changes watch.Interface, good func(watch.EventType, T) bool) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var seen []string
	for {
		select {
		case e, ok := <-changes.ResultChan():
			if !ok {
				t.Fatalf("the watch ended while waiting for %s", what)
			}
			obj, ok := e.Object.(T)
			if ok && good(e.Type, obj) {
				return obj
			}
			seen = append(seen, fmt.Sprintf("%s %T", e.Type, e.Object))
		case <-ctx.Done():
			t.Fatalf("waiting for %s; saw %s", what, strings.Join(seen, ", "))
		}
	}
}
