// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// noObjects is a cluster without ConfigMaps and Secrets.
type noObjects struct{}

func (noObjects) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (noObjects) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

func (noObjects) Container(_ context.Context, pod *corev1.Pod, _ string) (*corev1.Container, error) {
	return pod.Spec.Containers[0].DeepCopy(), nil
}

// mine is a part of all names that this test process creates. The suffix makes it unambiguous, because a PID can
// be the prefix of another PID.
var mine = "-" + strconv.Itoa(os.Getpid()) + "-own"

// shellPod returns a pod that runs a shell script.
func shellPod(name, script string) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + mine)},
		Spec: corev1.PodSpec{
			NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, DNSPolicy: corev1.DNSDefault,
			Containers: []corev1.Container{{
				Name: "main", Image: "host", Command: []string{"/bin/sh", "-c", script}, ImagePullPolicy: corev1.PullIfNotPresent,
			}},
		},
	}
}

// cgroupsNamed returns the directories of cgroups whose paths contain text.
func cgroupsNamed(text string) (found []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error { // groups come and go
		if err == nil && e.IsDir() && strings.Contains(path, text) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// removeCgroups removes the cgroups that a test has left. It tries for some seconds, because killed processes
// end a little later.
func removeCgroups(text string) {
	deadline := time.After(5 * time.Second)
	for groups := cgroupsNamed(text); len(groups) > 0; groups = cgroupsNamed(text) {
		slices.Reverse(groups) // the deepest first
		for _, dir := range groups {
			procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // it may have gone
			for pid := range strings.FieldsSeq(string(procs)) {
				if n, err := strconv.Atoi(pid); err == nil && n > 0 {
					_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended
				}
			}
			_ = os.Remove(dir) // the next look finds the rest
		}
		select {
		case <-deadline:
			return // the next test uses other names
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestPodThatForksWithoutEnd checks that other pods keep running, that the node reports the fork bomb, and that nothing
// of the pod is left after its deletion.
func TestPodThatForksWithoutEnd(t *testing.T) {
	w := open(t, nil)
	w.needLimits()
	t.Cleanup(func() { removeCgroups(mine) })
	recorder := record.NewFakeRecorder(1000)
	in := cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, Recorder: recorder},
		InternalIP:     "127.0.0.1", KubeClusterDomain: "cluster.local",
	}
	p, err := process.New(t.Context(), in, process.Config{StateDir: t.TempDir(), Isolation: process.IsolationNone, PodPidsLimit: 60})
	if err != nil {
		t.Fatal(err)
	}
	p.UsePodObjects(noObjects{})
	var mu sync.Mutex
	last := map[string]corev1.PodStatus{}
	p.NotifyPods(t.Context(), func(pod *corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		last[pod.Name] = pod.Status
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.RunInBackground(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	phase := func(name string, want corev1.PodPhase) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return last[name].Phase == want }
	}
	// Each child is a process that stays. A shell ends when it gets no more processes, and the command above it
	// then runs in its place. The number is limited for the sake of a machine on which this test fails.
	bomb := shellPod("bomb", "sh -c 'n=0; while [ $n -lt 300 ]; do sleep 120 & n=$((n+1)); done'; exec sleep 120")
	if err := p.CreatePod(t.Context(), bomb); err != nil {
		t.Fatal(err)
	}
	said := ""
	deadline := time.After(time.Minute)
	for !strings.Contains(said, "PidsLimitReached") {
		select {
		case event := <-recorder.Events:
			said += event + "\n"
		case <-deadline:
			t.Fatalf("nobody says that the pod forks without end:\n%s", said)
		}
	}
	other := shellPod("other", "echo one | cat")
	if err := p.CreatePod(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.until("another pod to run to its end", phase("other", corev1.PodSucceeded))
	if groups := cgroupsNamed("podbomb" + mine); len(groups) == 0 {
		t.Error("the pod has no cgroup")
	}
	now := metav1.Now()
	bomb.DeletionTimestamp = &now
	for _, pod := range []*corev1.Pod{bomb, other} {
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	w.until("the deletion", func() bool {
		pods, err := p.GetPods(t.Context())
		return err == nil && len(pods) == 0
	})
	w.until("the end of its cgroups", func() bool { return len(cgroupsNamed(mine)) == 0 })
	if n := sleepers(t); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// sleepers counts the running children of the bomb.
func sleepers(t *testing.T) (n int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if data, err := os.ReadFile(line); err == nil && string(data) == "sleep\x00120\x00" {
			group, _ := os.ReadFile(filepath.Join(filepath.Dir(line), "cgroup")) // it may have ended
			if strings.Contains(string(group), "podbomb"+mine) {
				n++
			}
		}
	}
	return n
}
