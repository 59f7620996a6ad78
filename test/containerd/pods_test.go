// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// apply creates the objects in the YAML, in which NODE stands for the test's node.
func (w *world) apply(yaml string) {
	w.Helper()
	path := filepath.Join(w.TempDir(), "apply.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(yaml, "NODE", w.node)), 0o600); err != nil {
		w.Fatal(err)
	}
	w.do("apply", "-f", path)
}

// pod returns the present pod.
func (w *world) pod(name string) *corev1.Pod {
	w.Helper()
	p, err := w.api.Client.CoreV1().Pods(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// awaitPod returns the pod as soon as is returns true for it.
func (w *world) awaitPod(name, what string, is func(*corev1.Pod) bool) (p *corev1.Pod) {
	w.Helper()
	w.await("pod "+name+" "+what, func() (bool, string) {
		p = w.pod(name)
		return is(p), p.Status.String()
	})
	return p
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func phase(want corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == want }
}

// TestPods runs pods of many kinds on one node, side by side.
func TestPods(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]func(*world){
		"streams":          streams,
		"restart policies": restarts,
		"init containers":  initContainers,
		"volumes":          volumes,
		"memory limit":     outOfMemory,
		"deletion":         deletion,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := *w
			sub.T = t
			test(&sub)
		})
	}
}

func streams(w *world) {
	w.apply(`
apiVersion: v1
kind: Pod
metadata: {name: streams}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  containers:
    - name: c
      image: busybox:1.36
      command: ["sh", "-c", "echo started; mkdir /www; echo hello >/www/index.html; exec httpd -f -p 8080 -h /www"]
      readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
`)
	w.awaitPod("streams", "is ready", ready)
	if got := w.do("logs", "streams"); got != "started" {
		w.Errorf("log is %q, want started", got)
	}
	out, err := w.kubectl(w.Context(), "exec", "streams", "--", "sh", "-c", "echo out; exit 7")
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.ExitCode() != 7 || out != "out\n" {
		w.Errorf("exec wrote %q and ended with %v, want out and exit code 7", out, err)
	}
	cmd := w.api.KubectlCommand(w.T, "exec", "--namespace="+w.namespace, "-i", "streams", "--", "cat")
	cmd.Stdin = strings.NewReader("into the container")
	if out, err := cmd.Output(); err != nil || string(out) != "into the container" {
		w.Errorf("exec of cat wrote %q, %v; want what it read", out, err)
	}
	if got := w.get("streams", "8080"); got != "hello\n" {
		w.Errorf("through port-forward came %q, want hello", got)
	}
}

// get fetches / from a port of a pod through port-forward.
func (w *world) get(pod, port string) string {
	w.Helper()
	cmd := w.api.KubectlCommand(w.T, "port-forward", "--namespace="+w.namespace, pod, ":"+port)
	from, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	line := make([]byte, 1<<10)
	n, err := from.Read(line)
	if err != nil {
		w.Fatalf("kubectl port-forward: %v", err)
	}
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(line[:n]))
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "http://"+address, nil)
	if err != nil {
		w.Fatalf("kubectl port-forward said %q: %v", line[:n], err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return string(body)
}

func restarts(w *world) {
	w.apply(`
apiVersion: v1
kind: Pod
metadata: {name: onfailure}
spec:
  nodeName: NODE
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  volumes: [{name: data, emptyDir: {}}]
  containers:
    - name: c
      image: busybox:1.36
      command: ["sh", "-c", "test -f /data/second && { echo second; exit 0; }; touch /data/second; echo first; exit 3"]
      volumeMounts: [{name: data, mountPath: /data}]
---
apiVersion: v1
kind: Pod
metadata: {name: never}
spec:
  nodeName: NODE
  restartPolicy: Never
  containers: [{name: c, image: "busybox:1.36", command: ["sh", "-c", "echo bye >/dev/termination-log; exit 5"]}]
`)
	p := w.awaitPod("onfailure", "has succeeded", phase(corev1.PodSucceeded))
	if s := p.Status.ContainerStatuses[0]; s.RestartCount != 1 || s.State.Terminated == nil || s.State.Terminated.Reason != "Completed" ||
		s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 3 {
		w.Errorf("container restarted after exit code 3: %+v", s)
	}
	if got := w.do("logs", "onfailure"); got != "second" {
		w.Errorf("log is %q, want second", got)
	}
	if got := w.do("logs", "--previous", "onfailure"); got != "first" {
		w.Errorf("log of the previous run is %q, want first", got)
	}
	p = w.awaitPod("never", "has failed", phase(corev1.PodFailed))
	s := p.Status.ContainerStatuses[0]
	if end := s.State.Terminated; s.RestartCount != 0 || end == nil || end.ExitCode != 5 || end.Reason != "Error" || strings.TrimSpace(end.Message) != "bye" {
		w.Errorf("container that must not restart: %+v", s)
	}
}

func initContainers(w *world) {
	w.apply(`
apiVersion: v1
kind: Pod
metadata: {name: init}
spec:
  nodeName: NODE
  restartPolicy: Never
  volumes: [{name: data, emptyDir: {}}]
  initContainers:
    - {name: one, image: "busybox:1.36", command: ["sh", "-c", "echo one >>/data/order"], volumeMounts: [{name: data, mountPath: /data}]}
    - {name: two, image: "busybox:1.36", command: ["sh", "-c", "echo two >>/data/order"], volumeMounts: [{name: data, mountPath: /data}]}
  containers:
    - {name: c, image: "busybox:1.36", command: ["cat", "/data/order"], volumeMounts: [{name: data, mountPath: /data}]}
---
apiVersion: v1
kind: Pod
metadata: {name: init-fails}
spec:
  nodeName: NODE
  restartPolicy: Never
  initContainers: [{name: one, image: "busybox:1.36", command: ["false"]}]
  containers: [{name: c, image: "busybox:1.36", command: ["true"]}]
`)
	w.awaitPod("init", "has succeeded", phase(corev1.PodSucceeded))
	if got := w.do("logs", "init"); got != "one\ntwo" {
		w.Errorf("init containers wrote %q, want one, then two", got)
	}
	p := w.awaitPod("init-fails", "has failed", phase(corev1.PodFailed))
	if s := p.Status.ContainerStatuses[0]; s.State.Waiting == nil || s.State.Waiting.Reason != "PodInitializing" || s.ContainerID != "" {
		w.Errorf("got %+v for a container whose init container has failed, want it to wait for PodInitializing", s)
	}
}

func volumes(w *world) {
	w.apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: old}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: sesame}
---
apiVersion: v1
kind: Pod
metadata: {name: volumes, labels: {color: red}}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  securityContext: {fsGroup: 2000, runAsUser: 1000}
  volumes:
    - {name: settings, configMap: {name: settings}}
    - {name: password, secret: {secretName: password, defaultMode: 0440}}
    - {name: memory, emptyDir: {medium: Memory}}
    - name: about
      downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
  containers:
    - name: c
      image: busybox:1.36
      command: ["sleep", "1000"]
      volumeMounts:
        - {name: settings, mountPath: /settings}
        - {name: settings, mountPath: /mode, subPath: mode}
        - {name: password, mountPath: /password, readOnly: true}
        - {name: memory, mountPath: /memory}
        - {name: about, mountPath: /about}
`)
	w.awaitPod("volumes", "is ready", ready)
	for command, want := range map[string]string{
		"cat /settings/mode":                "old",
		"cat /mode":                         "old",
		"cat /password/password":            "sesame",
		"stat -Lc %a:%g /password/password": "440:2000",
		"cat /about/labels":                 `color="red"`,
		"touch /memory/x && df /memory | tail -1 | cut -d' ' -f1":                   "tmpfs",
		"test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token": "token",
		"touch /password/x 2>&1 | grep -o 'Read-only file system'":                  "Read-only file system",
	} {
		if got := w.do("exec", "volumes", "--", "sh", "-c", command); got != want {
			w.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	w.do("patch", "configmap", "settings", "--patch", `{"data":{"mode":"new"}}`)
	w.await("the volume has what the ConfigMap has", func() (bool, string) {
		got := w.do("exec", "volumes", "--", "cat", "/settings/mode")
		return got == "new", got
	})
}

// outOfMemory accepts the reason Error, too. containerd learns the end of a container and the reason from two
// events, in any order, and reports Error while it has only the first event. A kubelet shows that as well.
func outOfMemory(w *world) {
	w.apply(`
apiVersion: v1
kind: Pod
metadata: {name: oom}
spec:
  nodeName: NODE
  restartPolicy: Never
  containers:
    - name: c
      image: busybox:1.36
      command: ["sh", "-c", "exec tail /dev/zero"]
      resources: {limits: {memory: 16Mi}}
`)
	p := w.awaitPod("oom", "has failed", phase(corev1.PodFailed))
	end := p.Status.ContainerStatuses[0].State.Terminated
	if end == nil || end.ExitCode != 137 || end.Reason != "OOMKilled" && end.Reason != "Error" {
		w.Errorf("container over its limit: %+v, want OOMKilled or Error, and 137", p.Status.ContainerStatuses[0].State)
	}
}

func deletion(w *world) {
	w.apply(`
apiVersion: v1
kind: Pod
metadata: {name: deleted}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 60
  containers: [{name: c, image: "busybox:1.36", command: ["sh", "-c", "trap 'exit 0' TERM; echo trapped; sleep 1000 & wait $!"]}]
`)
	p := w.awaitPod("deleted", "is ready", ready)
	w.await("it has its trap", func() (bool, string) {
		got := w.do("logs", "deleted")
		return got == "trapped", got
	})
	w.do("delete", "pod", "deleted", "--timeout=50s") // less than its grace period
	conn, err := w.runtime.Connect()
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	filter := &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": string(p.UID)}}
	w.await("nothing is left in containerd", func() (bool, string) {
		left, err := runtimeapi.NewRuntimeServiceClient(conn).ListPodSandbox(w.Context(), &runtimeapi.ListPodSandboxRequest{Filter: filter})
		return err == nil && len(left.GetItems()) == 0, left.String()
	})
}
