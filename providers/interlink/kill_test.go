// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/plugin"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// childOf names the environment variable that makes this program a plugin or a node for a test to kill. Its
// value has the kind and the directory.
const childOf = "VK_TEST_INTERLINK_CHILD"

// child runs this program as a plugin or a node until its standard input ends, which is when the test that
// started it ends.
func child(what, dir string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if what == "plugin" {
		runner := cli.Provider{Name: "ledger", New: func(context.Context, cli.ProviderInput) (nodeutil.Provider, error) { return ledger{dir: dir}, nil }}
		return plugin.Run(ctx, plugin.Options{Runner: runner, StateDir: filepath.Join(dir, "state"), Listen: "unix://" + filepath.Join(dir, "plugin")})
	}
	data, err := os.ReadFile(filepath.Join(dir, "pod.json"))
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(data, pod); err != nil {
		return err
	}
	p, err := openProvider(remotetest.NewHome(nil, "vk-0").Input(), Config{URL: os.Getenv("VK_TEST_INTERLINK_URL"), earlier: time.Nanosecond})
	if err != nil {
		return err
	}
	p.UsePodObjects(remotetest.NewHome(nil, "vk-0"))
	go func() { _ = p.RunInBackground(ctx) }()
	return p.CreatePod(ctx, pod)
}

// ledger is a provider whose jobs are files, so that they outlive the plugin. Its file named next has a command:
// kill the process before or after a submission, or do not return while the file is there.
type ledger struct {
	nodeutil.Provider
	dir string
}

func (l ledger) file(uid string) string { return filepath.Join(l.dir, "jobs", uid) }

// CreatePod implements node.PodLifecycleHandler. It submits every pod, even twice.
func (l ledger) CreatePod(_ context.Context, pod *corev1.Pod) error {
	next := filepath.Join(l.dir, "next")
	what, _ := os.ReadFile(next)
	die := func() {
		_ = os.Remove(next)
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {}
	}
	if string(what) == "before" {
		die()
	}
	data, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	if _, err := os.Stat(l.file(string(pod.UID))); err == nil {
		data = append(data, "\nand another one"...)
	}
	if err := os.WriteFile(l.file(string(pod.UID)), data, 0o600); err != nil {
		return err
	}
	switch string(what) {
	case "after":
		die()
	case "soon": // after this return, during the write of the record, or during the answer
		go die()
	case "hold":
		for range time.Tick(time.Millisecond) {
			if _, err := os.Stat(next); err != nil {
				return nil
			}
		}
	}
	return nil
}

// GetPods implements node.PodLifecycleHandler.
func (l ledger) GetPods(context.Context) (pods []*corev1.Pod, err error) {
	names, err := filepath.Glob(l.file("*"))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		pod := &corev1.Pod{}
		if err := json.NewDecoder(strings.NewReader(string(data))).Decode(pod); err != nil {
			continue // the file is being written
		}
		pod.Status.Phase = corev1.PodRunning
		pods = append(pods, pod)
	}
	return pods, err
}

// GetPod implements node.PodLifecycleHandler.
func (l ledger) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pods, err := l.GetPods(ctx)
	for _, pod := range pods {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, nil
		}
	}
	return nil, errors.Join(err, errdefs.NotFound("no such job"))
}

// UpdatePod implements node.PodLifecycleHandler.
func (l ledger) UpdatePod(context.Context, *corev1.Pod) error { return nil }

// DeletePod implements node.PodLifecycleHandler.
func (l ledger) DeletePod(_ context.Context, pod *corev1.Pod) error {
	if err := os.Remove(l.file(string(pod.UID))); errors.Is(err, fs.ErrNotExist) {
		return errdefs.NotFound("no such job")
	}
	return nil
}

// TestKill9 kills the plugin or the node around a submission, in each of 100 rounds, or of 24 if interLink's own
// programs are not required. Afterwards there is exactly one job.
func TestKill9(t *testing.T) {
	rounds := 24
	if os.Getenv("VK_REQUIRE_INTERLINK") != "" {
		rounds = 100
	}
	h := &home{Home: remotetest.NewHome(t, "vk-0"), dir: shortDir(t)}
	if err := os.Mkdir(filepath.Join(h.dir, "jobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(h.dir, "next")
	site := startChild(t, h, "plugin")
	reached(t, "unix", filepath.Join(h.dir, "plugin"))
	h.startServer()
	h.config = Config{URL: h.url, earlier: time.Nanosecond} // our plugin repeats no answer
	for i := range rounds {
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), stays())
		pod.Spec.ServiceAccountName = ""
		if err := h.Pods.Add(pod); err != nil {
			t.Fatal(err)
		}
		what := []string{"before", "after", "soon", "hold"}[i%4]
		write(t, next, what)
		if what == "hold" {
			data, _ := json.Marshal(pod)
			write(t, filepath.Join(h.dir, "pod.json"), string(data))
			node := startChild(t, h, "node")
			eventually(t, "the submission of the node", func() bool { _, err := os.Stat(ledger{dir: h.dir}.file(string(pod.UID))); return err == nil })
			node.kill()
			if i%8 == 3 { // the plugin is done when the node is back
				_ = os.Remove(next)
			}
		} else {
			p, stop := h.start()
			first := p.CreatePod(h.Context(), pod.DeepCopy())
			stop()
			if err := site.wait(); err == nil || what != "soon" && first == nil {
				t.Fatalf("round %d, %s: the plugin ended with %v, the create with %v", i, what, err, first)
			}
			site = startChild(t, h, "plugin")
			reached(t, "unix", filepath.Join(h.dir, "plugin"))
		}
		p, stop := h.start() // the earlier provider is gone, with everything that it knew
		created := make(chan error, 1)
		go func() { created <- p.CreatePod(h.Context(), pod.DeepCopy()) }()
		if i%8 == 7 { // the plugin reports the pod once its provider has it, so the next create waits for the first one
			eventually(t, "the next create", func() bool { return h.line.count("POST /create") == 1 })
			_ = os.Remove(next)
		}
		if err := <-created; err != nil {
			t.Fatalf("round %d, %s: %v", i, what, err)
		}
		_ = os.Remove(next)
		if err := p.CreatePod(h.Context(), pod.DeepCopy()); err != nil {
			t.Fatalf("round %d, %s, again: %v", i, what, err)
		}
		eventually(t, "the pod to run", func() bool {
			got, err := p.GetPod(h.Context(), "default", pod.Name)
			return err == nil && got.UID == pod.UID
		})
		data, err := os.ReadFile(ledger{dir: h.dir}.file(string(pod.UID)))
		if err != nil || strings.Contains(string(data), "another one") {
			t.Fatalf("round %d, %s: %v, and the jobs are %s", i, what, err, data)
		}
		h.Delete(p, pod)
		h.UntilGone(p, pod)
		stop()
	}
	eventually(t, "nothing to be left", func() bool {
		left, _ := filepath.Glob(filepath.Join(h.dir, "*s*", "*"))
		records, _ := os.ReadDir(filepath.Join(h.dir, "state", "pods"))
		return len(left) == 1 && len(records) == 0 // the directory of the records
	})
}

// started is a running child.
type started struct {
	cmd  *exec.Cmd
	wait func() error
}

func (p *started) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.wait()
}

// startChild starts this program as a plugin or a node, which ends with the test.
func startChild(t *testing.T, h *home, what string) *started {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childOf+"="+what+":"+h.dir, "VK_TEST_INTERLINK_URL="+h.url)
	if _, err := cmd.StdinPipe(); err != nil { // the child ends when its input ends, which is when this process ends
		t.Fatal(err)
	}
	said, err := os.OpenFile(filepath.Join(h.dir, "child.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &started{cmd: cmd, wait: sync.OnceValue(cmd.Wait)}
	t.Cleanup(p.kill)
	return p
}
