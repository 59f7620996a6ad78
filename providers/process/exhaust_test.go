// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// noisyNode is a node whose pods share a small disk.
type noisyNode struct {
	*world // for its clock and its test only
	config process.Config
	disk   string

	// pods and stop belong to the running daemon.
	pods   podProvider
	stop   func()
	events *record.FakeRecorder

	mu    sync.Mutex
	last  map[string]corev1.PodStatus // guarded by mu
	node  *corev1.Node                // guarded by mu: the last reported state
	heard string                      // of events
}

// podProvider has the methods of the provider that these tests call.
type podProvider interface {
	nodeutil.Provider
	node.NodeProvider
}

// noisyEnv tells the tests that TestNoisyPods runs them.
const noisyEnv = "PROCESS_NOISY"

// TestNoisyPods runs the tests of pods that use all available resources. They mostly wait, so several run in
// parallel. With all in parallel, the first sandboxes would take a minute to start on two cores.
func TestNoisyPods(t *testing.T) {
	if os.Getenv(isolationEnv) != "" || os.Getenv(noisyEnv) != "" {
		t.Skip("the tests name the isolation themselves")
	}
	if os.Geteuid() != 0 {
		t.Skip("a disk of the test's own needs the rights of root")
	}
	if !exists("/bin/busybox") {
		t.Skip("there is no /bin/busybox, whose shell the pods run")
	}
	t.Parallel()
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^(TestNoisy|TestSecurityF4)", "-test.v", "-test.parallel=8")
	cmd.Env = append(os.Environ(), noisyEnv+"=1", "PROCESS_IMAGES="+images)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "\n--- PASS: Test") {
		t.Errorf("%v\n%s", err, out)
	}
}

// eachRuntime runs a test with containers of each runtime.
func eachRuntime(t *testing.T, test func(t *testing.T, config process.Config)) {
	t.Helper()
	if os.Getenv(noisyEnv) == "" {
		t.Skip("TestNoisyPods runs it")
	}
	t.Parallel()
	for _, isolation := range []string{process.IsolationRunc, process.IsolationGVisor} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			config := process.Config{Isolation: isolation}
			if isolation == process.IsolationGVisor {
				config.RuntimePath = needGVisor(t)
			} else {
				needRunc(t)
			}
			test(t, config)
		})
	}
}

// newNoisyNode mounts a disk with these mount options and starts a daemon on it.
func newNoisyNode(t *testing.T, config process.Config, options string) *noisyNode {
	t.Helper()
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	m := &noisyNode{world: &world{t: t}, disk: t.TempDir(), config: config, last: map[string]corev1.PodStatus{}}
	if err := unix.Mount("disk", m.disk, "tmpfs", 0, options+",mode=700"); err != nil {
		t.Skipf("mount a small disk: %v", err)
	}
	m.config.Images, m.config.StateDir, m.config.HostPaths = []string{images}, filepath.Join(m.disk, "state"), []string{"/bin"}
	m.config.ImageGC.HighThresholdPercent = 100
	t.Cleanup(func() { // whatever the result of the test
		m.stop()
		m.end()
		_ = unix.Unmount(m.disk, unix.MNT_DETACH)
		removeCgroups(m.own(""))
	})
	m.start()
	return m
}

// own returns a name that no other test uses.
func (m *noisyNode) own(name string) string {
	return name + strings.ReplaceAll("-"+filepath.Base(filepath.Dir(m.disk)), "/", "-")
}

// start starts a daemon.
func (m *noisyNode) start() {
	m.t.Helper()
	m.stop = func() {}
	m.events = record.NewFakeRecorder(10000)
	in := cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, Recorder: m.events},
		InternalIP:     "127.0.0.1", KubeClusterDomain: "cluster.local",
	}
	p, err := process.New(m.t.Context(), in, m.config)
	if err != nil {
		m.t.Fatalf("start the daemon: %v", err)
	}
	p.UsePodObjects(noObjects{})
	m.pods = p
	p.NotifyPods(m.t.Context(), func(pod *corev1.Pod) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.last[pod.Name] = pod.Status
	})
	p.ConfigureNode(m.t.Context(), in.Node)
	p.NotifyNodeStatus(m.t.Context(), func(n *corev1.Node) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.node = n
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.RunInBackground(ctx) }()
	m.stop = func() {
		cancel()
		m.stop = func() {}
		if err := <-ended; err != nil {
			m.t.Error(err)
		}
	}
}

// end removes all pods. No daemon may be running.
func (m *noisyNode) end() {
	r, err := process.Open(context.Background(), m.config, "n1", "127.0.0.1")
	if err != nil {
		m.t.Errorf("remove the pods: %v", err)
		return
	}
	defer r.Close(context.Background())
	list, err := r.ListPodSandbox(context.Background(), nil)
	for _, s := range list {
		if err := r.RemovePodSandbox(context.Background(), s.GetId()); err != nil {
			m.t.Error(err)
		}
	}
	if err != nil {
		m.t.Error(err)
	}
}

// run creates a pod that runs a script.
func (m *noisyNode) run(name, script string, change func(*corev1.Pod)) *corev1.Pod {
	m.t.Helper()
	pod := shellPod(name, script)
	pod.UID = types.UID(m.own(name))
	pod.CreationTimestamp = metav1.Now()
	file := corev1.HostPathFile
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "shell", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/bin/busybox", Type: &file}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	c := &pod.Spec.Containers[0]
	c.Image, c.Command = "demo", []string{"/busybox", "sh", "-c", script}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "shell", MountPath: "/busybox", ReadOnly: true}, {Name: "data", MountPath: "/data"}}
	if change != nil {
		change(pod)
	}
	if err := m.pods.CreatePod(m.t.Context(), pod); err != nil {
		m.t.Fatal(err)
	}
	return pod
}

// status returns the last reported status of a pod.
func (m *noisyNode) status(name string) corev1.PodStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[name]
}

func (m *noisyNode) awaitPhase(name string, want corev1.PodPhase) {
	m.t.Helper()
	m.until(fmt.Sprintf("pod %s to be %s", name, want), func() bool { return m.status(name).Phase == want })
}

func (m *noisyNode) running(name string) string {
	m.t.Helper()
	m.until("pod "+name+" to run", func() bool {
		s := m.status(name)
		return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Running != nil
	})
	return m.status(name).ContainerStatuses[0].ContainerID
}

// said collects the output of a command and gives it no input.
type said struct{ bytes.Buffer }

func (o *said) Stdin() io.Reader            { return nil }
func (o *said) HasStdin() bool              { return false }
func (o *said) Stdout() io.WriteCloser      { return o }
func (o *said) Stderr() io.WriteCloser      { return o }
func (o *said) TTY() bool                   { return false }
func (o *said) Resize() <-chan api.TermSize { return nil }
func (o *said) Close() error                { return nil }

func (m *noisyNode) exec(name, script string) (string, error) {
	var out said
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	err := m.pods.RunInContainer(ctx, "default", name, "main", []string{"/busybox", "sh", "-c", script}, &out)
	return out.String(), err
}

// hears waits for an event that contains all these words.
func (m *noisyNode) hears(words ...string) {
	m.t.Helper()
	deadline := time.After(3 * time.Minute)
	for {
		for line := range strings.Lines(m.heard) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return
			}
		}
		select {
		case event := <-m.events.Events:
			m.heard += event + "\n"
		case <-deadline:
			m.t.Fatalf("no event says %q:\n%s", words, m.heard)
		}
	}
}

// free returns the free bytes and the free files of the disk.
func (m *noisyNode) free() (bytes, files uint64) {
	m.t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(m.disk, &fs); err != nil {
		m.t.Fatal(err)
	}
	return fs.Bavail * uint64(fs.Bsize), fs.Ffree //nolint:gosec // sizes of a disk
}

// delete deletes pods, and checks that nothing of them is left.
func (m *noisyNode) delete(pods ...*corev1.Pod) {
	m.t.Helper()
	now := metav1.Now()
	for _, pod := range pods {
		pod.DeletionTimestamp = &now
		if err := m.pods.DeletePod(m.t.Context(), pod); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, pod := range pods {
		m.until("the deletion of pod "+pod.Name, func() bool {
			list, err := m.pods.GetPods(m.t.Context())
			return err == nil && !slices.ContainsFunc(list, func(p *corev1.Pod) bool { return p.UID == pod.UID })
		})
	}
}

// nothing checks that pods left no directories, mounts, control groups or processes on the machine.
func (m *noisyNode) nothing() {
	m.t.Helper()
	for _, dir := range []string{"containers/*", "sandboxes/*", "pods/pods/*", "pods/messages/*", "logs/*"} {
		found, err := filepath.Glob(filepath.Join(m.config.StateDir, dir))
		if err != nil || len(found) != 0 {
			m.t.Errorf("on the disk is left: %v, %v", found, err)
		}
	}
	if mounted(m.t, m.disk) {
		m.t.Error("something is mounted below the disk")
	}
	m.until(fmt.Sprintf("the end of the control groups, which were %v", cgroupsNamed(m.own(""))), func() bool { return len(cgroupsNamed(m.own(""))) == 0 })
	m.until("the end of the processes", func() bool { return len(m.processes()) == 0 })
}

// processes returns the processes whose working directory is on the disk.
func (m *noisyNode) processes() (found []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is well-formed
	for _, link := range links {
		at, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(at, m.disk) {
			found = append(found, link+" "+at)
		}
	}
	return found
}

// watch checks again and again that a pod answers, until the returned function is called.
func (m *noisyNode) watch(name string) (stop func()) {
	id := m.running(name)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(500 * time.Millisecond) // each exec costs a runtime much of the machine's time
		defer again.Stop()
		for {
			if out, err := m.exec(name, "echo here"); err != nil || out != "here\n" {
				if !m.t.Failed() { // otherwise the test is being cleaned up
					m.t.Errorf("a command in pod %s: got %q, %v", name, out, err)
				}
				return
			}
			select {
			case <-done:
				return
			case <-again.C:
			}
		}
	}()
	return func() {
		m.t.Helper()
		close(done)
		<-ended
		s := m.status(name)
		if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Running == nil || s.ContainerStatuses[0].ContainerID != id {
			m.t.Errorf("pod %s had container %s and is %s: %v", name, id, s.Phase, s.ContainerStatuses)
		}
	}
}
