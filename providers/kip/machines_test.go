// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kip

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ec2"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/qemu"
)

// bootTime is the time limit for a boot on a busy host without hardware acceleration.
const bootTime = 4 * time.Minute

// cellImage returns the boot image of machines. It skips the test if this host cannot run machines.
func cellImage(t *testing.T) string {
	t.Helper()
	image, err := filepath.Abs("../../bin/cell")
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.LookPath("qemu-system-x86_64")
	if _, missing := os.Stat(filepath.Join(image, "initrd")); err == nil && missing != nil {
		err = fmt.Errorf("%w: make it with `make cell-image`", missing)
	}
	if err != nil && os.Getenv("VK_REQUIRE_QEMU") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// shortDir returns a new directory with a short path, as sockets need it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kip-") //nolint:usetesting // the path of a test is long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// smallType is the size of machines in tests.
var smallType = Type{Name: "t3.nano", CPU: resource.MustParse("1"), Memory: resource.MustParse("256Mi")}

// shellPod makes a pod whose container prints hello and then waits.
func shellPod(pod *corev1.Pod) {
	pod.Spec.Containers[0].Command = []string{"sh", "-c", "echo hello; trap 'exit 0' TERM; while true; do sleep 1; done"}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
}

// machineHost runs the machines of emulated instances with QEMU. A machine has an address of the loopback device of its own, and reads its user data from
// the metadata service of its instance.
type machineHost struct {
	dir, image string

	mu  sync.Mutex
	all map[string]*hosted // guarded by mu; keyed by the ID of the instance
}

type hosted struct {
	driver   *qemu.Driver
	id       string
	metadata *httptest.Server
	console  string // after the end
}

var _ emulated.Host = (*machineHost)(nil)

// Boot implements emulated.Host.
func (h *machineHost) Boot(id, instanceType string, metadata http.Handler) (string, error) {
	if instanceType != smallType.Name {
		return "", fmt.Errorf("there is no capacity for %s", instanceType)
	}
	address := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250)) //nolint:gosec // no secret
	m := &hosted{metadata: httptest.NewServer(metadata)}
	_, port, err := net.SplitHostPort(m.metadata.Listener.Addr().String())
	if err != nil {
		return "", err
	}
	m.driver, err = qemu.New(qemu.Config{Dir: filepath.Join(h.dir, id), Image: h.image, Network: fmt.Sprintf(
		",net=169.254.169.0/24,hostfwd=tcp:%s:%d-:%d,guestfwd=tcp:169.254.169.254:80-cmd:/bin/busybox nc 127.0.0.1 %s", address, cell.Port, cell.Port, port)})
	if err != nil {
		return "", err
	}
	started, err := m.driver.Start(context.Background(), machine.Spec{Token: id, Type: smallType.machineType()})
	if err != nil {
		m.metadata.Close()
		return "", err
	}
	m.id = started.ID
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[id] = m
	return address, nil
}

func (h *machineHost) get(id string) *hosted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[id]
}

// IsRunning implements emulated.Host.
func (h *machineHost) IsRunning(id string) bool {
	m := h.get(id)
	now, there, err := m.driver.Describe(context.Background(), m.id)
	return err == nil && there && now.State == machine.Running
}

// Console implements emulated.Host.
func (h *machineHost) Console(id string) string {
	m := h.get(id)
	if text, err := m.driver.Console(context.Background(), m.id); err == nil {
		return text
	}
	return m.console
}

// End implements emulated.Host.
func (h *machineHost) End(id string) {
	m := h.get(id)
	m.console = h.Console(id)
	_ = m.driver.Stop(context.Background(), m.id)
	m.metadata.Close()
}

// streams are the ends of a command.
type streams struct{ out, err bytes.Buffer }

func (s *streams) Stdin() io.Reader            { return nil }
func (s *streams) Stdout() io.WriteCloser      { return closing{&s.out} }
func (s *streams) Stderr() io.WriteCloser      { return closing{&s.err} }
func (s *streams) TTY() bool                   { return false }
func (s *streams) Resize() <-chan api.TermSize { return nil }

type closing struct{ io.Writer }

func (closing) Close() error { return nil }

// TestEC2PodRunsOnAMachine: a node with the driver ec2 starts a machine from the user data of its request, and runs a pod there. The pod has a log and takes
// a command. Its delete leaves no instance and no process.
func TestEC2PodRunsOnAMachine(t *testing.T) {
	host := &machineHost{dir: shortDir(t), image: cellImage(t), all: map[string]*hosted{}}
	cloud := emulated.New(host)
	server := httptest.NewServer(cloud)
	t.Cleanup(func() {
		for _, id := range cloud.Running() {
			if t.Failed() {
				t.Logf("the console of %s: %s", id, host.Console(id))
			}
			host.End(id)
		}
		server.Close()
	})
	t.Setenv("AWS_ACCESS_KEY_ID", "AK")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SK")
	dir := shortDir(t)
	file := filepath.Join(dir, "kip.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `apiVersion: %s
kind: %s
clusterName: home
directory: %s
image: ami-0123456789abcdef0
containers: programs
types: [{name: t3.nano, cpu: 1, memory: 256Mi}]
ec2: {region: us-east-1, endpoint: %q, subnetID: subnet-1}
`, APIVersion, Kind, dir, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newCluster(Config{})
	in := w.input()
	in.ConfigPath = file
	ctx, cancel := context.WithTimeout(t.Context(), bootTime)
	defer cancel()
	made, err := Provider().New(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	kit := made.(*provider).Provider
	p := &process{w: w, driver: &driver{kit: kit}, ended: make(chan struct{}), news: make(chan struct{}, 1)}
	p.run(ctx)
	defer func() { cancel(); <-p.ended }()
	if _, err := kit.GetPods(ctx); err != nil { // pods made from now on do not belong to an earlier process
		t.Fatal(err)
	}
	pod := w.pod("one", shellPod)
	if err := kit.CreatePod(ctx, pod.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := p.await(ctx, func() bool { return w.status(pod).Phase == corev1.PodRunning }); err != nil {
		t.Fatalf("the pod is %+v: %v", w.status(pod), err)
	}
	if ip := w.status(pod).PodIP; !strings.HasPrefix(ip, "127.") {
		t.Errorf("the pod has the address %q, want that of its instance", ip)
	}
	var said streams
	if err := kit.RunInContainer(ctx, pod.Namespace, pod.Name, "main", []string{"uname", "-r"}, &said); err != nil || !strings.Contains(said.out.String(), "cloud") {
		t.Errorf("the command says %q %q, %v", &said.out, &said.err, err)
	}
	log, err := kit.GetContainerLogs(ctx, pod.Namespace, pod.Name, "main", api.ContainerLogOpts{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if _ = log.Close(); err != nil || string(text) != "hello\n" {
		t.Errorf("the log is %q, %v", text, err)
	}
	if n := len(cloud.Requests("RunInstances")); n != 1 {
		t.Errorf("%d starts", n)
	}
	_ = w.indexer.Delete(pod)
	if err := kit.DeletePod(ctx, pod.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	for len(cloud.Running()) > 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("instances %s are left", cloud.Running())
		case <-time.After(200 * time.Millisecond): // the end of a process that is not a child cannot be awaited
		}
	}
	if left := processesOf(host.dir); len(left) > 0 {
		t.Errorf("processes %d are left", left)
	}
}

// processesOf returns the processes whose arguments name a directory.
func processesOf(dir string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		args, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if bytes.Contains(args, []byte(dir+"/")) && bytes.HasPrefix(args, []byte("qemu-system")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// nodeName makes a test process a node.
const nodeName = "kip-node"

func init() { podjob.Main(nodeName, runNode) }

// mortal is an agent for a process that may be killed.
type mortal struct {
	agent
	p *process
}

func (m mortal) Join(ctx context.Context, before string, record func(context.Context, string) error) error {
	if err := m.agent.Join(ctx, before, record); err != nil {
		return err
	}
	return m.p.step(func() error { return nil })
}

func (m mortal) Give(ctx context.Context, b podjob.Bundle) error {
	return m.p.step(func() error { return m.agent.Give(ctx, b) })
}

func (m mortal) Stop(ctx context.Context, grace time.Duration) error {
	return m.p.step(func() error { return m.agent.Stop(ctx, grace) })
}

// runNode runs a node with machines of QEMU in a process of its own, and kills it at a step. The node prints "running" when its pod runs. After a line on
// its standard input it deletes the pod, and it prints "gone" when it has no machine.
func runNode(args []string) error {
	dir, image, after, deleted := args[0], args[1], args[3] == "true", args[4] == "true"
	at, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	config, err := Config{
		ClusterName: "home", Directory: dir, Image: image, Containers: programs, QEMU: &QEMU{}, Types: []Type{smallType}, KeepEnded: &metav1.Duration{Duration: time.Minute},
	}.complete()
	if err != nil {
		return err
	}
	ctx := context.Background()
	cloud, pace, err := config.open(ctx)
	if err != nil {
		return err
	}
	authority, _, err := openAuthority(config.AuthorityFile)
	if err != nil {
		return err
	}
	w := newCluster(config)
	p := &process{w: w, dieAt: int32(at), after: after, ended: make(chan struct{}), news: make(chan struct{}, 1), kill: func() { //nolint:gosec // it is small
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}}
	p.driver = newDriver(w.input(), config, killable{cloud, p}, authority, pace)
	dial := p.driver.dial
	p.driver.dial = func(token, address string, allowed func(string) bool) agent {
		return mortal{dial(token, address, allowed), p}
	}
	if p.dieAt > stopSteps { // a step of the start may come twice
		p.dieAt -= stopSteps
		p.steps.Store(-1000)
	}
	pod := w.pod("one", shellPod)
	if deleted {
		_ = w.indexer.Delete(pod)
	}
	p.run(ctx)
	orders := make(chan struct{})
	go func() {
		if bufio.NewScanner(os.Stdin).Scan() {
			close(orders)
		}
	}()
	said := false
	for {
		for _, err := range p.reconcile(ctx) {
			fmt.Fprintln(os.Stderr, err)
		}
		if w.status(pod).Phase == corev1.PodRunning && !said {
			said = true
			fmt.Println("running")
		}
		if _, is, _ := w.indexer.Get(pod); !is {
			if all, err := cloud.List(ctx, p.driver.ownerTags()); err == nil && len(all) == 0 {
				fmt.Println("gone")
				return nil
			}
		}
		select {
		case <-orders:
			if p.steps.Load() < 0 {
				p.steps.Store(0)
			}
			_ = w.indexer.Delete(pod)
			orders = nil
		case <-p.news:
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// child is a node in a separate process.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	said  bytes.Buffer // errors
}

// startChild starts a node that dies at a step of its work, or never if the step is 0.
func startChild(ctx context.Context, dir, image string, at int32, after, deleted bool) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, "/proc/self/exe", enter.Marker, enter.ModeRun, nodeName, dir, image, fmt.Sprint(at), fmt.Sprint(after), fmt.Sprint(deleted))}
	c.cmd.Stderr = &c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.lines = bufio.NewScanner(out)
	return c, c.cmd.Start()
}

// await returns when the node has printed a line. It is an error if the node ends earlier.
func (c *child) await(line string) error {
	for c.lines.Scan() {
		if c.lines.Text() == line {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the node ends, and has not said %q", line), c.cmd.Wait(), errors.New(c.said.String()))
}

// stopSteps is the step of a delete before its first one.
const stopSteps = 4

// kills are the steps in the lifetime of a pod: 1 the start of the machine, 2 the tag with its key, 3 the join, 4 the pod is given, and after the
// delete 5 the pod is told to stop, 6 the machine is stopped. Step 0 is a kill at any time of the start.
var kills = []struct {
	at    int32
	after bool
}{{1, true}, {4, true}, {1, false}, {2, false}, {0, false}, {2, true}, {3, true}, {4, false}, {0, false}, {5, false}, {5, true}, {6, false}, {6, true}}

// TestNoOrphansOnMachines: a node with real machines is killed with SIGKILL at a step of its work. The next node runs the pod on one machine, and its delete
// leaves no machine, process or file. VK_KIP_ROUNDS sets the number of rounds.
func TestNoOrphansOnMachines(t *testing.T) {
	original := cellImage(t)
	rounds := 2
	if n := os.Getenv("VK_KIP_ROUNDS"); n != "" {
		var err error
		if rounds, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	for round := range rounds {
		k := kills[round%len(kills)]
		t.Run(fmt.Sprintf("round-%02d", round+1), func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			image := filepath.Join(dir, "image") // each process of QEMU has the directory in its arguments
			if err := os.Symlink(original, image); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, pid := range processesOf(dir) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*bootTime)
			defer cancel()
			began := time.Now()
			first, err := startChild(ctx, dir, image, k.at, k.after, false)
			if err != nil {
				t.Fatal(err)
			}
			if k.at > stopSteps { // otherwise the pod may go before it is given
				if err := first.await("running"); err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(first.in, "delete\n")
			}
			if k.at == 0 {
				timer := time.AfterFunc(rand.N(15*time.Second), func() { _ = first.cmd.Process.Kill() }) //nolint:gosec // no secret
				defer timer.Stop()
			}
			if err := first.await("never"); first.cmd.ProcessState == nil || first.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the node was not killed: %v", err)
			}
			killed := time.Since(began)
			second, err := startChild(ctx, dir, image, 0, false, k.at > stopSteps)
			if err != nil {
				t.Fatal(err)
			}
			if k.at <= stopSteps {
				if err := second.await("running"); err != nil {
					t.Fatal(err)
				}
				if all := processesOf(dir); len(all) != 1 {
					t.Errorf("the pod runs, and the processes of machines are %d", all)
				}
				_, _ = io.WriteString(second.in, "delete\n")
			}
			if err := errors.Join(second.await("gone"), second.cmd.Wait()); err != nil {
				t.Fatal(err)
			}
			if left := processesOf(dir); len(left) > 0 {
				t.Errorf("processes %d are left", left)
			}
			if left, err := os.ReadDir(filepath.Join(dir, "machines")); err != nil || len(left) > 0 {
				t.Errorf("files %v are left, %v", left, err)
			}
			t.Logf("round %d: killed at step %d (after its effect: %t) after %.1f s; one machine, and none %.1f s later", round+1, k.at, k.after, killed.Seconds(), (time.Since(began) - killed).Seconds())
		})
	}
}
