// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// realNode is the path at which `make interlink` builds interLink's own virtual kubelet.
const realNode = "../../bin/interlink/virtual-kubelet"

// TestPluginBehindUpstreamsNode sends a pod from interLink's own virtual kubelet through its own API server to
// our plugin. The pod runs there with the files of its Secret, and stops.
func TestPluginBehindUpstreamsNode(t *testing.T) {
	needServer(t)
	needProgram(t, realNode)
	api := testapi.Start(t)
	namespace := api.Namespace(t)
	dir, cloud := shortDir(t), inprocess.New(t.Context())
	sidecar, _ := startPlugin(t, dir, goroutines(cloud), "")
	url, _ := startServer(t, dir, sidecar)
	nodeName := "upstream-" + namespace
	startUpstreamsNode(t, api, dir, url, nodeName)

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "own"}, StringData: map[string]string{"key": "hello from home"}}
	if _, err := api.Client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := api.Client.CoreV1().Pods(namespace)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{
			NodeName: nodeName, AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](2),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "main", Image: "program", Args: program.Program{Show: []string{"/own/key"}, Stay: time.Hour}.Args(),
				VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/own"}},
			}},
			Volumes: []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to run", func() bool {
		got, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && got.Status.Phase == corev1.PodRunning && len(got.Status.ContainerStatuses) == 1 && got.Status.ContainerStatuses[0].State.Running != nil
	})
	if n := cloud.Instances(pod.UID); n != 1 {
		t.Errorf("%d instances of the pod run, want 1", n)
	}
	var said []byte
	eventually(t, "the log to have the secret's file", func() bool {
		said, err = pods.GetLogs("web", &corev1.PodLogOptions{Container: "main", InsecureSkipTLSVerifyBackend: true}).DoRaw(t.Context())
		return err == nil && strings.Contains(string(said), "hello from home")
	})
	if err := pods.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to be gone", func() bool {
		_, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	eventually(t, "the container and the record to be gone", func() bool {
		left, err := os.ReadDir(filepath.Join(dir, "state", "pods"))
		return err == nil && len(left) == 0 && cloud.Instances(pod.UID) == 0
	})
}

// startUpstreamsNode runs interLink's own virtual kubelet until the test ends, with a configuration file like
// its users'.
func startUpstreamsNode(t *testing.T, api *testapi.API, dir, url, nodeName string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	config := filepath.Join(dir, "VirtualKubeletConfig.yaml")
	write(t, config, fmt.Sprintf("InterlinkURL: %s\nInterlinkPort: \"0\"\nNamespace: default\nVerboseLogging: true\nResources: {CPU: \"10\", Memory: 10Gi, Pods: \"10\"}\n", url))
	// The program starts its informers while other code still makes them. If they start too early, the program
	// never sees a pod, and the test starts it again.
	for range 10 {
		if runUpstreamsNode(t, dir, append(os.Environ(),
			"CONFIGPATH="+config, "NODENAME="+nodeName, "KUBECONFIG="+api.KubeconfigPath, "POD_IP=127.0.0.1", "KUBELET_URL=127.0.0.1", "KUBELET_PORT="+port)) {
			return
		}
	}
	t.Fatal("interLink's own node does not begin to look at pods")
}

// runUpstreamsNode starts the program, and ends it if it does not watch pods.
func runUpstreamsNode(t *testing.T, dir string, env []string) bool {
	t.Helper()
	out, err := os.Create(filepath.Join(dir, "node.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(realNode)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out.Close()
	})
	t.Cleanup(stop)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-ticker.C {
		if said, err := os.ReadFile(out.Name()); err == nil && strings.Contains(string(said), "Pod cache in-sync") {
			return true
		}
	}
	stop()
	return false
}
