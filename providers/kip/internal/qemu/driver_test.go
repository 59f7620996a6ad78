// SPDX-License-Identifier: Apache-2.0

package qemu

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// bootTime is the time limit for a boot on a busy host without hardware acceleration.
const bootTime = 4 * time.Minute

// imageDir is the output directory of `make cell-image`.
const imageDir = "../../../../bin/cell"

// lab has a driver, an authority, and a machine with a running pod, for all tests.
type lab struct {
	driver    *Driver
	authority *cell.Authority
	machine   machine.Machine
	orphan    machine.Machine // gets no contact from a node
	client    *cell.Client
	states    chan cell.State
	first     podjob.Status // the status when main ran, and hungry had ended
	notice    atomic.Value  // the page with the notice of EC2, a string; none: there is no notice
	end       func()
}

// ServeHTTP implements the metadata service of EC2, as far as the agent asks it after the boot.
func (l *lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, _ := l.notice.Load().(string)
	if r.URL.Path != "/latest/meta-data/spot/instance-action" || page == "" {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = io.WriteString(w, page)
}

var shared = sync.OnceValues(newLab)

func TestMain(m *testing.M) {
	code := m.Run()
	if l, err := shared(); err == nil {
		l.end()
	}
	os.Exit(code)
}

// missing is the reason why this host cannot run machines.
type missing string

func (m missing) Error() string { return string(m) }

func open(t *testing.T) *lab {
	t.Helper()
	l, err := shared()
	var none missing
	switch {
	case errors.As(err, &none) && os.Getenv("VK_REQUIRE_QEMU") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			console, err := l.driver.Console(context.Background(), l.machine.ID)
			t.Logf("the console of the machine: %s, %v", console, err)
		}
	})
	return l
}

// newLab starts a machine, and gives it a pod with an image from its node.
func newLab() (_ *lab, err error) {
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		return nil, missing("no qemu-system-x86_64: install Debian's package qemu-system-x86")
	}
	image, err := filepath.Abs(imageDir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(image, "initrd")); err != nil {
		return nil, missing("no image of a cell: make it with `make cell-image`")
	}
	dir, err := os.MkdirTemp("", "cells-")
	if err != nil {
		return nil, err
	}
	var ends []func()
	l := &lab{states: make(chan cell.State, 1000), end: func() {
		for i := range ends {
			ends[len(ends)-1-i]()
		}
	}}
	ends = append(ends, func() { _ = os.RemoveAll(dir) })
	defer func() {
		if err != nil {
			l.end()
		}
	}()
	// QEMU forwards the metadata service, like other addresses, only on the network of the guest.
	service := httptest.NewServer(l)
	ends = append(ends, service.Close)
	network := ",net=169.254.169.0/24,guestfwd=tcp:169.254.169.254:80-cmd:/bin/busybox nc 127.0.0.1 " + service.URL[strings.LastIndex(service.URL, ":")+1:]
	if l.driver, err = New(Config{Dir: dir, Image: image, Network: network}); err != nil {
		return nil, err
	}
	ends = append(ends, func() {
		all, _ := l.driver.List(context.Background(), nil)
		for _, m := range all {
			_ = l.driver.Stop(context.Background(), m.ID)
		}
	})
	if l.authority, err = cell.NewAuthority(); err != nil {
		return nil, err
	}
	server := httptest.NewServer(registry.New())
	ends = append(ends, server.Close)
	ref := strings.TrimPrefix(server.URL, "http://") + "/team/shell:1"
	if err := push(ref); err != nil {
		return nil, err
	}
	if l.orphan, err = l.driver.Start(context.Background(), l.spec("orphan", 2*time.Second)); err != nil { // boots beside the other machine
		return nil, err
	}
	if l.machine, err = l.driver.Start(context.Background(), l.spec("shared", time.Hour)); err != nil {
		return nil, err
	}
	l.client = l.authority.Client("shared", l.machine.Address)
	ends = append(ends, l.client.Close)
	l.client.ServeImages(podjob.PullImage, func(image string) bool { return image == ref })
	ctx, cancel := context.WithTimeout(context.Background(), bootTime)
	defer cancel()
	for l.client.Join(ctx, "", func(context.Context, string) error { return nil }) != nil {
		if m, _, err := l.driver.Describe(ctx, l.machine.ID); err == nil && m.State == machine.Gone {
			cancel()
		}
		select {
		case <-ctx.Done():
			console, _ := l.driver.Console(context.Background(), l.machine.ID)
			return nil, fmt.Errorf("the machine does not answer: %s", console)
		case <-time.After(500 * time.Millisecond): // nothing but an answer shows that the agent is ready
		}
	}
	main := corev1.Container{Name: "main", Image: ref, Command: []string{"sh", "-c", script}}
	hungry := corev1.Container{Name: "hungry", Image: ref, Command: []string{"sh", "-c", hungryScript}, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("32Mi"), corev1.ResourceCPU: resource.MustParse("500m"),
	}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u-1"}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{main, hungry},
	}}
	if err := l.client.Give(ctx, podjob.Bundle{Pod: pod, Node: &corev1.Node{}, Runtime: podjob.RuntimeUnpack, Containers: map[string]*corev1.Container{"main": &main, "hungry": &hungry}}); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.client.Watch(watching, func(s cell.State) { l.states <- s }) // the machine may end first
	}()
	ends = append(ends, func() {
		stop()
		<-done
	})
	l.first, err = l.await(func(s podjob.Status) bool {
		k := s.Pod.ContainerStatuses
		return s.Ended || len(k) == 2 && k[0].State.Running != nil && k[1].State.Terminated != nil
	})
	return l, err
}

// script is the command of the test pod.
const script = "echo hello; mkdir /tmp/w; echo page > /tmp/w/page; httpd -p 8080 -h /tmp/w; trap 'echo stopped; exit 3' TERM; while true; do sleep 1; done"

// hungryScript is the command of a container that uses more memory than its limit.
const hungryScript = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max; head -c 100m /dev/zero | tail; echo lives"

// push makes an image of busybox, with a name too long for a tar header.
func push(to string) error {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return missing("no /bin/busybox: install Debian's package busybox-static")
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	add := func(h tar.Header, data []byte) {
		h.Size = int64(len(data))
		err = errors.Join(err, w.WriteHeader(&h))
		_, writeErr := w.Write(data)
		err = errors.Join(err, writeErr)
	}
	for _, dir := range []string{"bin", "tmp", "dev", "proc", "sys", "etc"} {
		add(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o1777}, nil)
	}
	add(tar.Header{Name: "bin/busybox", Mode: 0o755}, busybox)
	for _, applet := range strings.Fields("sh echo mkdir httpd sleep uname cat ls mount mknod dd nc head find insmod id tail printf") {
		add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"}, nil)
	}
	add(tar.Header{Name: "etc/" + strings.Repeat("long-", 40) + "é", Mode: 0o600, ModTime: time.Unix(1, 5)}, []byte("long"))
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return err
	}
	if image, err = mutate.Config(image, v1.Config{Env: []string{"PATH=/bin", "OF=image"}, WorkingDir: "/tmp"}); err != nil {
		return err
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		return err
	}
	return remote.Write(ref, image)
}

// podMemory is the memory of the pod in a machine.
const podMemory = 256 << 20

// spec returns the specification of a machine.
func (l *lab) spec(token string, orphanAfter time.Duration) machine.Spec {
	data := l.authority.UserData(token, "", orphanAfter, 0)
	data.Spot = true
	return machine.Spec{
		Token: token, Type: machine.Type{Name: "small", MilliCPU: 1000, Memory: podMemory}, Tags: map[string]string{"of": token}, UserData: data.Marshal(),
	}
}

func (l *lab) await(want func(podjob.Status) bool) (s podjob.Status, err error) {
	late := time.After(bootTime)
	for {
		select {
		case now := <-l.states:
			if now.Status == nil {
				continue
			}
			if s = *now.Status; want(s) {
				return s, nil
			}
		case <-late:
			return s, fmt.Errorf("the pod does not get there: %+v", s.Pod)
		}
	}
}

// exec runs a shell in the pod, and returns its output.
func (l *lab) exec(t *testing.T, script string) string {
	t.Helper()
	var out bytes.Buffer
	err := l.client.Stream(t.Context(), podjob.Request{Op: podjob.OpExec, Container: "main", Command: []string{"sh", "-c", script + "; true"}, Stdout: true, Stderr: true}, podjob.Ends{Out: &out, Err: &out})
	if err != nil {
		t.Errorf("%s: %v: %s", script, err, &out)
	}
	return out.String()
}

func (l *lab) log(t *testing.T, container string, opts api.ContainerLogOpts) string {
	t.Helper()
	r, err := l.client.Logs(t.Context(), container, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestDeadManSwitch: a machine without contact to a node ends itself, and leaves no process.
func TestDeadManSwitch(t *testing.T) {
	l := open(t)
	m := l.orphan
	ctx, cancel := context.WithTimeout(t.Context(), bootTime)
	defer cancel()
	for {
		now, there, err := l.driver.Describe(ctx, m.ID)
		if err != nil || !there {
			t.Fatalf("%t, %v", there, err)
		}
		if now.State == machine.Gone {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the machine is %+v", now)
		case <-time.After(200 * time.Millisecond): // the kernel reports the end of child processes only
		}
	}
	console, err := l.driver.Console(t.Context(), m.ID)
	if err != nil || !strings.Contains(console, "no node has spoken to this machine for 2s, and it runs no pod") {
		t.Errorf("the console says %q, %v", console, err)
	}
	if again, err := l.driver.Start(t.Context(), l.spec("orphan", time.Hour)); err != nil || again.State != machine.Gone {
		t.Errorf("a token whose machine is gone makes %+v, %v", again, err)
	}
	if err := l.driver.Stop(t.Context(), m.ID); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(l.driver.config.Dir, m.ID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("files are left: %v", err)
	}
}

// TestContainerWithTooMuchMemoryIsKilledAlone: the kernel of the machine keeps the limits of each container, and a container can read them. Only the
// container that uses more memory ends.
func TestContainerWithTooMuchMemoryIsKilledAlone(t *testing.T) {
	l := open(t)
	k := l.first.Pod.ContainerStatuses
	if l.first.Ended || len(k) != 2 || k[1].State.Terminated == nil {
		t.Fatalf("the pod is %+v", l.first)
	}
	if end := k[1].State.Terminated; end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("the container has ended with %+v", end)
	}
	if got := l.log(t, "hungry", api.ContainerLogOpts{}); got != "33554432\n50000 100000\n" {
		t.Errorf("it says %q", got)
	}
	if got := l.exec(t, "cat /sys/fs/cgroup/memory.max; echo 1 > /sys/fs/cgroup/cgroup.kill"); !strings.Contains(got, "No such file") && !strings.HasPrefix(got, "max\n") || !strings.Contains(got, "Read-only") {
		t.Errorf("the other container says %q", got)
	}
}

// TestServiceInAMachine: the kernel of the machine has the modules for Services. A program of the pod reaches an endpoint by a cluster IP, and is refused
// at one without an endpoint.
func TestServiceInAMachine(t *testing.T) {
	l := open(t)
	service, endpoint := netip.MustParseAddrPort("169.254.169.200:80"), netip.MustParseAddrPort("169.254.169.15:8080") // QEMU gives the second to the first guest
	get := "printf 'GET /page HTTP/1.0\\r\\n\\r\\n' | nc -w 20 169.254.169.200 80"
	for _, c := range []struct {
		endpoints []netip.AddrPort
		want      string
	}{{[]netip.AddrPort{endpoint}, "page\n"}, {nil, "refused"}} {
		if err := l.client.SetServices(t.Context(), cell.Services{Ports: []cell.ServicePort{{Service: service, Protocol: corev1.ProtocolTCP, Endpoints: c.endpoints}}}); err != nil {
			t.Fatal(err)
		}
		if said := l.exec(t, get); !strings.Contains(said, c.want) {
			t.Errorf("with the endpoints %v: got %q, want %q", c.endpoints, said, c.want)
		}
	}
}

// TestGuestCannotReachHostLoopback: the guest reaches it neither at QEMU's address for the host nor at another address. The guest has no egress.
func TestGuestCannotReachHostLoopback(t *testing.T) {
	l := open(t)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan string, 10)
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			reached <- c.LocalAddr().String()
			_ = c.Close()
		}
	}()
	defer server.Close()
	port := server.Addr().(*net.TCPAddr).Port
	connect := func(host string, port int) string {
		return l.exec(t, fmt.Sprintf("echo | nc -w 3 %s %d && echo connected", host, port))
	}
	if said := connect("127.0.0.1", 8080); !strings.Contains(said, "connected") {
		t.Fatalf("a program of the pod cannot connect to a port of the pod, so it proves nothing: %s", said)
	}
	for _, host := range []string{"169.254.169.2", "169.254.169.3", "10.0.2.2", "127.0.0.1"} {
		if said := connect(host, port); strings.Contains(said, "connected") {
			t.Errorf("%s: %s", host, said)
		}
	}
	select {
	case at := <-reached:
		t.Errorf("the guest reaches %s of the host", at)
	default:
	}
}

// TestStrangerCertificate: the agent answers only its node.
func TestStrangerCertificate(t *testing.T) {
	l := open(t)
	other, err := cell.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	c := other.Client("shared", l.machine.Address)
	defer c.Close()
	if err := c.Join(t.Context(), "", func(context.Context, string) error { return nil }); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger joins: %v", err)
	}
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", l.machine.Address) //nolint:gosec // it is to fail
	if err == nil {
		_, err = conn.Read(make([]byte, 1)) // the machine refuses the connection after it sees no certificate
		_ = conn.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: %v", err)
	}
	if _, err := l.client.Stats(t.Context()); err != nil {
		t.Errorf("its node: %v", err)
	}
}

// TestSpotNoticeReachesTheNode: the agent reads EC2's notice from a metadata service that its pod cannot reach, and reports it to the node.
func TestSpotNoticeReachesTheNode(t *testing.T) {
	l := open(t)
	if said := l.exec(t, "echo GET / | nc -w 2 169.254.169.254 80 && echo connected"); strings.Contains(said, "connected") {
		t.Errorf("the pod reaches the metadata service: %s", said)
	}
	l.notice.Store(`{"action": "terminate", "time": "2026-11-28T08:22:00Z"}`)
	late := time.After(bootTime)
	for said := ""; said == ""; {
		select {
		case s := <-l.states:
			said = s.Interrupted
		case <-late:
			t.Fatal("the agent does not tell the notice")
		}
	}
}

// TestPodCannotReadUserData: the pod finds none in the firmware, the agent's files, the memory or the services of the machine. Root in the pod is not root
// of the machine.
func TestPodCannotReadUserData(t *testing.T) {
	l := open(t)
	said := l.exec(t, `id -u
cat /sys/firmware/qemu_fw_cfg/by_name/opt/vk/user-data/raw && echo reads the firmware
mount -t sysfs s /tmp && echo mounts
mknod /tmp/mem c 1 1 && echo makes devices
dd if=/dev/mem bs=1 count=1 of=/tmp/first && echo reads memory
find / -name 'qemu_fw_cfg*' -o -name agent.json -o -name user-data
cat /proc/1/root/var/lib/vk-cell/agent.json && echo reads the agent
echo | nc -w 2 169.254.169.254 80 && echo reads metadata
cat /proc/sys/net/ipv4/ping_group_range`)
	if !strings.HasPrefix(said, "0\n") || !strings.Contains(said, "0\t2147483647") {
		t.Fatalf("it does not run as root, or cannot ping without CAP_NET_RAW: %s", said)
	}
	for _, word := range []string{"reads", "mounts", "makes", "authority", "\n/"} {
		if strings.Contains(said, word) {
			t.Errorf("%q is in %s", word, said)
		}
	}
}

// TestPodRunsInAMachine: the test checks the pod's image, log, commands, port, usage and end, and that a restarted node finds the machine. It must run
// last, because it ends the pod.
func TestPodRunsInAMachine(t *testing.T) {
	l := open(t)
	if got := l.exec(t, "uname -r; echo $OF; cat /etc/long*; ls /var/lib/vk-cell"); !strings.Contains(got, "-cloud-") || !strings.Contains(got, "\nimage\nlong") || !strings.Contains(got, "No such file") {
		t.Errorf("in the pod: %s", got)
	}
	if got := l.log(t, "main", api.ContainerLogOpts{}); got != "hello\n" {
		t.Errorf("the log is %q", got)
	}
	var page bytes.Buffer
	if err := l.client.Stream(t.Context(), podjob.Request{Op: podjob.OpPort, Port: 8080}, podjob.Ends{In: strings.NewReader("GET /page HTTP/1.0\r\n\r\n"), Out: &page}); err != nil || !strings.HasSuffix(page.String(), "page\n") {
		t.Errorf("the port answers %q, %v", &page, err)
	}
	s, err := l.client.Stats(t.Context())
	if err != nil || s.CPU == nil || *s.CPU.UsageCoreNanoSeconds == 0 || *s.Memory.WorkingSetBytes == 0 {
		t.Fatalf("it uses %+v, %v", s, err)
	}
	if k := s.Containers; len(k) != 1 || k[0].Name != "main" || *k[0].Memory.WorkingSetBytes == 0 || *k[0].Memory.WorkingSetBytes >= *s.Memory.WorkingSetBytes {
		t.Errorf("its containers use %+v, and the machine %d bytes", k, *s.Memory.WorkingSetBytes)
	}
	// A pod has the memory of its type: the kernel and the agent take what Reserve adds.
	t.Logf("a machine for a pod of %d MiB: %d MiB are in use, and %d MiB are left", podMemory>>20, *s.Memory.WorkingSetBytes>>20, *s.Memory.AvailableBytes>>20)
	if left := int64(*s.Memory.AvailableBytes); left < podMemory {
		t.Errorf("the machine has %d MiB for a pod that may have %d MiB", left>>20, podMemory>>20)
	}
	again, err := New(l.driver.config)
	if err != nil {
		t.Fatal(err)
	}
	again.accel = l.driver.accel // a driver tests the acceleration only once
	if all, err := again.List(t.Context(), map[string]string{"of": "shared"}); err != nil || len(all) != 1 || all[0].ID != l.machine.ID || all[0].State != machine.Running {
		t.Errorf("a driver that starts anew sees %+v, %v", all, err)
	}
	if same, err := again.Start(t.Context(), l.spec("shared", time.Hour)); err != nil || same.ID != l.machine.ID || same.Address != l.machine.Address {
		t.Errorf("the second start with the token is %+v, %v", same, err)
	}
	if err := again.Tag(t.Context(), l.machine.ID, map[string]string{"more": "1"}); err != nil {
		t.Error(err)
	}
	if m, there, err := l.driver.Describe(t.Context(), l.machine.ID); err != nil || !there || m.Tags["more"] != "1" || m.Tags["of"] != "shared" {
		t.Errorf("with a tag it is %+v, %v", m, err)
	}
	if err := l.client.Stop(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	end, err := l.await(func(s podjob.Status) bool { return s.Ended })
	if err != nil {
		t.Fatal(err)
	}
	if code := end.Pod.ContainerStatuses; len(code) != 2 || code[0].State.Terminated == nil || code[0].State.Terminated.ExitCode != 3 {
		t.Errorf("the pod has ended with %+v", end.Pod)
	}
	if got := l.log(t, "main", api.ContainerLogOpts{Tail: 1}); got != "stopped\n" {
		t.Errorf("the end of the log is %q", got)
	}
	if err := again.Stop(t.Context(), l.machine.ID); err != nil {
		t.Fatal(err)
	}
	if _, there, err := l.driver.Describe(t.Context(), l.machine.ID); there || err != nil {
		t.Errorf("after its end there is the machine: %t, %v", there, err)
	}
}
