// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests with processes and sandboxes use the program that make runsc has built.

func runsc(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../../../../bin/runsc")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil && os.Getenv("VK_REQUIRE_RUNSC") != "" {
		t.Fatal("there is no bin/runsc")
	}
	if err != nil {
		t.Skip("there is no bin/runsc: make runsc builds it")
	}
	return path
}

// user is the user that starts the programs of a test: the current user, or another one if the current user is
// root.
type user uint32

func (u user) credential() *syscall.Credential {
	if os.Geteuid() == int(u) {
		return nil
	}
	return &syscall.Credential{Uid: uint32(u), Gid: uint32(u)}
}

// eachUser runs a test as each user that the test can run as.
func eachUser(t *testing.T, test func(t *testing.T, u user)) {
	users := []user{user(os.Geteuid())}
	if os.Geteuid() == 0 {
		users = append(users, 1000)
	}
	for _, u := range users {
		t.Run("uid "+strconv.Itoa(int(u)), func(t *testing.T) { test(t, u) })
	}
}

// process is a network process.
type process struct {
	t      testing.TB
	user   user
	dir    string
	socket string
	file   *os.File
	cmd    *exec.Cmd
	log    *bytes.Buffer
}

func startProcess(t testing.TB, u user, config Config) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "podnet") //nolint:usetesting // other users get into it, and its path is short, as those of sockets have to be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, int(u), int(u)); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, user: u, dir: dir, socket: filepath.Join(dir, "s")}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: p.socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	if p.file, err = l.File(); err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	t.Cleanup(func() { _ = p.file.Close() })
	t.Cleanup(func() { p.end(syscall.SIGTERM) })
	p.start()
	p.configure(config)
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.log = &bytes.Buffer{}
	p.cmd = exec.Command(runsc(p.t), "podnet", "serve")
	p.cmd.ExtraFiles, p.cmd.Stderr = []*os.File{p.file}, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.user.credential(), Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) configure(config Config) {
	p.t.Helper()
	if _, a := ask(p.t, p.socket, Request{Op: OpConfigure, Config: &config}); a.Error != "" {
		p.t.Fatalf("%s; the process says: %s", a.Error, p.log)
	}
}

func (p *process) end(sig syscall.Signal) {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(sig)
		if err := p.cmd.Wait(); err != nil && sig == syscall.SIGTERM {
			p.t.Errorf("the network process: %v: %s", err, p.log)
		}
		p.cmd = nil
	}
}

// attach attaches a pod to the process, which keeps the pod until its connection is closed.
func (p *process) attach(pod Pod, network int) *net.UnixConn {
	p.t.Helper()
	c, a := ask(p.t, p.socket, Request{Op: OpAttach, Pod: &pod}, network)
	if a.Error != "" {
		p.t.Fatal(a.Error)
	}
	return c
}

// guest is a pod of the process.
func (p *process) guest(name, address string, ports ...HostPort) *guest {
	p.t.Helper()
	network, sandbox := pair(p.t)
	p.t.Cleanup(func() { _ = unix.Close(network) })
	c := p.attach(Pod{name, netip.MustParseAddr(address), ports}, network)
	return newGuest(p.t, address, sandbox, network, c)
}

// sandbox is a real sandbox that serves the same ports as the internet of the tests.
type sandbox struct {
	t       testing.TB
	process *process
	id      string
	pid     int
	flags   []string
	card    int
	control *net.UnixConn
	pod     Pod
}

func (p *process) sandbox(id, address string, flags ...string) *sandbox {
	p.t.Helper()
	s := p.sandboxOf(id, address, append(flags, "--network=sandbox")...)
	network, card := pair(p.t)
	s.card = network
	p.t.Cleanup(func() { _ = unix.Close(network) })
	s.control = p.attach(s.pod, network)
	s.join(card, address)
	s.awaitServer()
	return s
}

// sandboxOf starts a sandbox, whose network the flags choose.
func (p *process) sandboxOf(id, address string, flags ...string) *sandbox {
	t := p.t
	t.Helper()
	s := &sandbox{t: t, process: p, id: id, pod: Pod{Name: "ns/" + id}}
	if address != "" {
		s.pod.Address = netip.MustParseAddr(address)
	}
	s.flags = append([]string{
		"--root=" + filepath.Join(p.dir, "root"), "--log=" + filepath.Join(p.dir, id+".log"), "--log-format=json", "--platform=systrap", "--ignore-cgroups",
		"--overlay2=none", "--oci-seccomp", "--allow-suid", "--host-settings=ignore", "--gofer-network-namespace=new",
	}, flags...)
	if p.user != 0 {
		s.flags = append(s.flags, "--rootless")
	}
	s.flags = append(s.flags, "--net-raw")
	bundle := filepath.Join(p.dir, id)
	s.bundle(bundle, "sandbox", "serve")
	pidFile := filepath.Join(bundle, "pid")
	s.mustRun("run", "--detach", "--bundle", bundle, "--pid-file", pidFile, id)
	t.Cleanup(func() { s.mustRun("delete", "--force", id) })
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if s.pid, err = strconv.Atoi(string(data)); err != nil {
		t.Fatal(err)
	}
	return s
}

// awaitServer returns when the program in the sandbox listens.
func (s *sandbox) awaitServer() {
	s.t.Helper()
	for end := time.Now().Add(patience); ; {
		_, a, _ := askStream(s.t, s.process.socket, Request{Op: OpDial, Address: s.pod.Address, Port: helloPort})
		if a.Error == "" {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal(a.Error)
		}
	}
}

// container starts another container in the sandbox and returns a sandbox whose commands run in that container.
func (s *sandbox) container(id string) *sandbox {
	s.t.Helper()
	c := *s
	c.id = id
	bundle := filepath.Join(s.process.dir, id)
	s.bundle(bundle, "container", "wait")
	c.mustRun("run", "--detach", "--bundle", bundle, "--pid-file", filepath.Join(bundle, "pid"), id)
	s.t.Cleanup(func() { c.mustRun("delete", "--force", id) })
	return &c
}

// bundle makes a container that runs this program.
func (s *sandbox) bundle(dir, kind, command string) {
	s.t.Helper()
	root := filepath.Join(dir, "rootfs")
	u := int(s.process.user)
	var err error
	for _, d := range []string{dir, root, filepath.Join(root, "proc"), filepath.Join(root, "tmp")} {
		if err == nil {
			err = os.Mkdir(d, 0o755)
		}
		if err == nil {
			err = os.Chown(d, u, u)
		}
	}
	program := filepath.Join(root, "guest")
	if err == nil {
		err = copyFile("/proc/self/exe", program)
	}
	config := map[string]any{
		"ociVersion":  "1.0.2",
		"process":     map[string]any{"args": []string{"/guest", guestCommand, command}, "cwd": "/", "user": map[string]int{"uid": 0, "gid": 0}, "capabilities": map[string][]string{"bounding": {"CAP_NET_RAW", "CAP_NET_BIND_SERVICE"}, "effective": {"CAP_NET_RAW", "CAP_NET_BIND_SERVICE"}, "permitted": {"CAP_NET_RAW", "CAP_NET_BIND_SERVICE"}}},
		"root":        map[string]any{"path": root, "readonly": true},
		"hostname":    s.id,
		"annotations": map[string]string{"io.kubernetes.cri.container-type": kind, "io.kubernetes.cri.sandbox-id": s.id},
		"mounts":      []map[string]any{{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}},
		"linux":       map[string]any{"namespaces": []map[string]string{{"type": "mount"}, {"type": "uts"}, {"type": "ipc"}, {"type": "pid"}}},
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(config)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

// join gives the sandbox its network card, as its supervisor does.
func (s *sandbox) join(card int, address string) {
	s.t.Helper()
	input, err := json.Marshal(JoinConfig{netip.MustParseAddr(address), testGateway, maxMTU})
	if err != nil {
		s.t.Fatal(err)
	}
	file := os.NewFile(uintptr(card), "card")
	defer file.Close()
	cmd := exec.Command(runsc(s.t), "podnet", "join", filepath.Join(s.process.dir, "root", "runsc-"+s.id+".sock"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.process.user.credential()}
	cmd.Stdin, cmd.ExtraFiles = bytes.NewReader(input), []*os.File{file}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("join: %v: %s", err, out)
	}
}

func (s *sandbox) run(args ...string) (string, error) {
	s.t.Helper()
	cmd := exec.Command(runsc(s.t), append(append([]string{}, s.flags...), args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.process.user.credential()}
	var out bytes.Buffer
	if args[0] != "run" && !slices.Contains(args, "--detach") { // a process that stays would keep the pipe open
		cmd.Stdout, cmd.Stderr = &out, &out
	}
	err := cmd.Run()
	return out.String(), err
}

func (s *sandbox) mustRun(args ...string) {
	s.t.Helper()
	if out, err := s.run(args...); err != nil {
		said, _ := os.ReadFile(filepath.Join(s.process.dir, s.id+".log"))
		s.t.Fatalf("runsc %s: %v: %s %s", strings.Join(args, " "), err, out, said)
	}
}

// exec runs this program in the sandbox, see beGuest.
func (s *sandbox) exec(args ...string) (string, error) {
	s.t.Helper()
	return s.run(append([]string{"exec", s.id, "/guest", guestCommand}, args...)...)
}
