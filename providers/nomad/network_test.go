// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// echo is the script of a pod that sends back the data of each connection.
const echo = "trap 'exit 0' TERM; nc -ll -p 7000 -e cat & wait"

// TestPortForward checks that a port of a pod passes on every byte, and that the end of one direction does not
// end the other.
func TestPortForward(t *testing.T) {
	h := openHome(t, sharedAgent(t).config("forward"), objects{})
	pod := shellPod("echo", DriverExec, echo)
	h.create(pod)
	h.until(pod, "running", phase(corev1.PodRunning))
	forward := func(ctx context.Context, port int32) (io.ReadWriteCloser, chan error) {
		mine, theirs := socketPair(t)
		ended := make(chan error, 1)
		go func() { ended <- h.PortForward(ctx, pod.Namespace, pod.Name, port, theirs) }()
		return mine, ended
	}
	if !await(t, func() bool { code, _ := h.exec(pod, "nc -w 1 127.0.0.1 7000 </dev/null"); return code == 0 }) {
		t.Fatal("the pod does not listen")
	}
	sent, got := make([]byte, 3<<20), &bytes.Buffer{}
	_, _ = rand.Read(sent)
	mine, ended := forward(t.Context(), 7000)
	go func() {
		_, _ = mine.Write(sent)
		_ = mine.(*net.TCPConn).CloseWrite()
	}()
	if _, err := io.Copy(got, mine); err != nil || !bytes.Equal(got.Bytes(), sent) {
		t.Errorf("got %d bytes back, %v, want the %d that were sent", got.Len(), err, len(sent))
	}
	if err := <-ended; err != nil {
		t.Errorf("PortForward: %v", err)
	}
	_, ended = forward(t.Context(), 7001)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("to a port on which nobody listens: got %v, want that it is refused", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	mine, ended = forward(ctx, 7000)
	_, _ = mine.Write([]byte("x"))
	_, _ = io.ReadFull(mine, make([]byte, 1))
	cancel() // the caller went away
	if err := <-ended; err != nil {
		t.Logf("PortForward whose caller went away: %v", err)
	}
	h.remove(pod)
	if err := h.PortForward(t.Context(), pod.Namespace, pod.Name, 7000, mine); !errdefs.IsNotFound(err) {
		t.Errorf("to a pod that is gone: got %v, want not-found", err)
	}
}

// socketPair returns both ends of a connection.
func socketPair(t *testing.T) (mine, theirs io.ReadWriteCloser) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mine, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mine.Close() })
	return mine, theirs
}

// traces returns the traces of an agent's pods on its machine, except the bridge and the chains that all pods
// share.
func (a *agent) traces(t *testing.T) (found []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); strings.HasPrefix(f[1], filepath.Join(a.dir, "data/alloc/")) || strings.Contains(f[1], "/netns/") {
			found = append(found, "mount "+f[1])
		}
	}
	for _, dir := range []string{"/run/netns", "/run/cni/nomad"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if name := e.Name(); name != "lock" && !strings.HasPrefix(name, "last_reserved_ip") {
				found = append(found, filepath.Join(dir, name))
			}
		}
	}
	for _, table := range []string{"filter", "nat"} {
		out, err := exec.Command("iptables", "-t", table, "-S").CombinedOutput()
		if err != nil {
			t.Fatalf("iptables: %v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "172.26.") || strings.HasPrefix(line, "-N CNI-") && !slices.Contains(shared, strings.TrimSpace(line)) {
				found = append(found, table+": "+strings.TrimSpace(line))
			}
		}
	}
	links, err := exec.Command("ip", "-o", "link", "show", "type", "veth").CombinedOutput()
	if err != nil {
		t.Fatalf("ip: %v: %s", err, links)
	}
	for line := range strings.Lines(string(links)) {
		found = append(found, "link "+strings.Fields(line)[1])
	}
	entries, _ := os.ReadDir(filepath.Join(a.dir, "data/alloc"))
	for _, e := range entries {
		for _, pattern := range groupsOfAllocations {
			groups, _ := filepath.Glob(pattern + e.Name() + ".*")
			for _, group := range groups {
				found = append(found, "cgroup "+group)
			}
		}
	}
	if runs(a) {
		found = append(found, "processes of tasks")
	}
	return found
}

// shared are the iptables chains that all CNI networks share.
var shared = []string{"-N CNI-ADMIN", "-N CNI-FORWARD", "-N CNI-HOSTPORT-DNAT", "-N CNI-HOSTPORT-MASQ", "-N CNI-HOSTPORT-SETMARK"}

// TestNothingIsLeftOfAPod checks that the network, mounts, control groups and processes of a pod are gone from
// the client after its end.
func TestNothingIsLeftOfAPod(t *testing.T) {
	a := newAgent(t, agent{acl: true})
	c := a.config("left")
	h := openHome(t, c, objects{secret: map[string][]byte{"a": []byte(canary)}, configMap: map[string][]byte{"c": []byte("conf")}})
	before := a.traces(t) // traces of other agents' pods on this machine
	own := func() []string {
		return slices.DeleteFunc(a.traces(t), func(s string) bool { return slices.Contains(before, s) })
	}
	pod := keysPod()
	pod.Spec.Containers[0].Command[2] = forever
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	pod.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "none", Command: []string{"/bin/true"}}}
	raw := shellPod("raw", DriverRawExec, forever)
	for _, p := range []*corev1.Pod{pod, raw} {
		h.create(p)
		h.until(p, "running", phase(corev1.PodRunning))
	}
	found := strings.Join(own(), "\n")
	for _, want := range []string{"mount ", "/netns/", "nat: ", "filter: ", "link veth", "cgroup ", "processes", "/run/cni/"} {
		if !strings.Contains(found, want) {
			t.Errorf("while pods run there is no %q, so its absence proves nothing:\n%s", want, found)
		}
	}
	h.remove(pod, raw)
	a.nothingLeft(t)
	var left []string
	if !await(t, func() bool { left = own(); return len(left) == 0 }) {
		t.Errorf("a minute after the pods were deleted there is\n%s", strings.Join(left, "\n"))
	}
}
