// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workloads is the folder of the examples. The tests run each example as a user would.
const workloads = "../../examples/workloads/"

// waitTime is patience as an argument of kubectl.
const waitTime = "--timeout=3m"

func TestExamples(t *testing.T) {
	w := newWorld(t)
	for file, test := range map[string]func(*world){
		"deployment.yaml":       deployment,
		"statefulset.yaml":      statefulSet,
		"job-with-sidecar.yaml": jobWithSidecar,
		"cronjob.yaml":          cronJob,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			sub := *w
			sub.T = t
			sub.do("apply", "-f", workloads+file)
			test(&sub)
		})
	}
}

func deployment(w *world) {
	w.do("rollout", "status", "deployment/web", waitTime)
	w.do("patch", "deployment/web", "--patch", `{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	w.do("rollout", "status", "deployment/web", waitTime)
	pods, err := w.api.Client.CoreV1().Pods(w.namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		w.Fatal(err)
	}
	updated := 0
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			if s.RestartCount != 0 {
				w.Errorf("container of pod %s restarted %d times", p.Name, s.RestartCount)
			}
		}
		if p.DeletionTimestamp == nil && p.Annotations["version"] == "2" {
			updated++
		}
	}
	if updated != 2 {
		w.Errorf("%d pods have the new version, want 2", updated)
	}
	if got := w.do("exec", "deployment/web", "--", "sh", "-c", "cat /www/index.html; id -u; echo $PASSWORD"); got != "hello\n1000\nopen sesame" {
		w.Errorf("in the container: %q", got)
	}
}

func statefulSet(w *world) {
	w.do("rollout", "status", "statefulset/members", waitTime)
	for _, name := range []string{"members-0", "members-1", "members-2"} {
		if got := w.do("exec", name, "--", "wget", "-qO-", "http://127.0.0.1:8080/"); got != name {
			w.Errorf("member %s says that it is %s", name, got)
		}
	}
}

func jobWithSidecar(w *world) {
	w.do("wait", "--for=condition=complete", "job/worker", waitTime)
	pods, err := w.api.Client.CoreV1().Pods(w.namespace).List(w.Context(), metav1.ListOptions{LabelSelector: "job-name=worker"})
	if err != nil {
		w.Fatal(err)
	}
	if len(pods.Items) != 2 {
		w.Errorf("the Job has %d pods, want 2", len(pods.Items))
	}
	for _, p := range pods.Items {
		if got := w.do("logs", p.Name, "-c", "work"); got != "done" {
			w.Errorf("the worker of pod %s wrote %q, want done", p.Name, got)
		}
		if s := p.Status.InitContainerStatuses[0]; s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 || s.RestartCount != 0 {
			w.Errorf("the sidecar of pod %s: %+v, want it ended with 0", p.Name, s)
		}
	}
}

func cronJob(w *world) {
	w.do("create", "job", "now", "--from=cronjob/tick")
	w.do("wait", "--for=condition=complete", "job/now", waitTime)
	if got := w.do("logs", "job/now"); !strings.HasPrefix(got, "now-") || !strings.HasSuffix(got, " on "+w.node) {
		w.Errorf("the pod says %q", got)
	}
}
