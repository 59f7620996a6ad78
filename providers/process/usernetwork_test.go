// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	eventrecord "k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// ownNetwork skips a test of the network that needs no rights where the isolation of the tests has none.
func ownNetwork(t *testing.T) {
	t.Helper()
	if testConfig("", "").Isolation == process.IsolationRunc && gvisorProgram() != "" {
		return // in network namespaces
	}
	onGVisor(t)
}

// beside starts one more pod with a shell, and a server at port 8080 if it is to have one.
func (w *world) beside(name string, serve bool, change func(*runtimeapi.PodSandboxConfig)) (sandbox, container string) {
	w.t.Helper()
	sandbox, err := w.pod(func(c *runtimeapi.PodSandboxConfig) {
		c.Metadata = &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name}
		if change != nil {
			change(c)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	first := w.sandbox
	defer func() { w.sandbox = first }()
	w.sandbox = sandbox
	if serve {
		w.run(name+"-server", serves)
	}
	return sandbox, w.run(name, shell, "/busybox", "sleep", "600")
}

// machineServer is a server of the machine at all its addresses.
func machineServer(t *testing.T) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "machine") }), ReadHeaderTimeout: time.Minute}
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { server.Close() })
	_, port, err = net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// reached tells whether a container reaches a server; a program that fails for another reason fails the test.
func (w *world) reached(container, address, port string) bool {
	w.t.Helper()
	said := w.in(container, "/busybox timeout 5 /busybox wget -q -O /dev/null http://"+net.JoinHostPort(address, port)+"/; echo ended with $?")
	switch {
	case strings.HasPrefix(said, "ended with 0\n"):
		return true
	case strings.Contains(said, "ended with 1\n") && strings.Contains(said, "can't connect"):
		return false
	}
	w.t.Fatalf("%s:%s: got %q", address, port, said) // refused addresses are refused at once
	return false
}

// TestSecurityK1APodDoesNotReachTheMachine: no address of the machine, no loopback of another pod, no link-local or metadata address. It reaches
// other pods at their addresses. A pod in the network of the machine reaches all that listens there.
func TestSecurityK1APodDoesNotReachTheMachine(t *testing.T) {
	ownNetwork(t)
	port := machineServer(t)
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var machine []string
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			machine = append(machine, prefix.Addr().String())
		}
	}
	t.Run("of its own", func(t *testing.T) {
		w := open(t, nil)
		id := w.run("attack", shell, "/busybox", "sleep", "600")
		other, _ := w.beside("other", true, nil)
		w.until("an answer of the other pod", func() bool { return w.reached(id, w.address(other), "8080") })
		gateway := netip.PrefixFrom(netip.MustParseAddr(w.address(w.sandbox)), 22).Masked().Addr().Next().String()
		for _, address := range append(machine, "127.0.0.2", "0.0.0.0", gateway, "169.254.169.254", "100.100.100.200", "168.63.129.16") {
			if w.reached(id, address, port) {
				t.Errorf("the machine is reached at %s", address)
			}
		}
		if w.reached(id, "127.0.0.1", "8080") {
			t.Error("the loopback of another pod is reached")
		}
	})
	t.Run("host", func(t *testing.T) {
		w := open(t, func(c *process.Config) { c.PodNetwork = process.PodNetworkHost })
		id := w.run("attack", shell, "/busybox", "sleep", "600")
		for _, address := range machine {
			if !w.reached(id, address, port) {
				t.Errorf("the attack does not reach the machine at %s where nothing is in its way", address)
			}
		}
	})
}

// TestSecurityK5ASandboxHasNoRights: the process that is the kernel of a pod has a user and a network namespace of its own, and none of the
// rights that a process of the machine's network needs.
func TestSecurityK5ASandboxHasNoRights(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	p := w.sandboxProcess(w.sandbox)
	for _, kind := range []string{"user", "net"} {
		of := func(pid string) string {
			link, err := os.Readlink("/proc/" + pid + "/ns/" + kind)
			if err != nil {
				t.Fatal(err)
			}
			return link
		}
		if of(strconv.Itoa(p.PID)) == of("self") {
			t.Errorf("the sandbox is in the %s namespace of the machine", kind)
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		t.Fatal(err)
	}
	const netAdmin = 1 << 12
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "CapEff", "CapPrm", "CapBnd":
			if caps, err := strconv.ParseUint(value, 16, 64); err != nil || name != "CapBnd" && caps&netAdmin != 0 {
				t.Errorf("%s: got %s, want no NET_ADMIN", name, value)
			} else if os.Geteuid() == 0 && caps != 0 {
				t.Errorf("%s: got %s, want no capability for a sandbox of root", name, value)
			}
		case "NoNewPrivs":
			if value != "1" {
				t.Errorf("NoNewPrivs: got %s", value)
			}
		case "Seccomp":
			if value != "2" {
				t.Errorf("Seccomp: got %s, want a filter", value)
			}
		case "Uid":
			if os.Geteuid() == 0 && strings.Fields(value)[0] == "0" {
				t.Errorf("the sandbox is root of the machine: Uid %s", value)
			}
		}
	}
}

// TestNetworkProcessIsStartedAgain: pods go on when it was killed, with the addresses that they had, and so they do with another daemon.
func TestNetworkProcessIsStartedAgain(t *testing.T) {
	ownNetwork(t)
	w := open(t, nil)
	id := w.run("main", shell, "/busybox", "sleep", "600")
	other, _ := w.beside("other", true, nil)
	address := w.address(other)
	answers := func(what string) {
		t.Helper()
		w.until(what, func() bool {
			return w.reached(id, address, "8080")
		})
	}
	answers("an answer of the other pod")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	first := w.networkProcess()
	if !first.Alive() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", first.PID))
		t.Fatalf("the network process %v has ended: %s, %v", first, stat, err)
	}
	if err := shim.KillProcess(first); err != nil {
		t.Fatal(err)
	}
	w.until("the end of the network process", func() bool { return !first.Alive() })
	w.until("another network process", func() bool { p := w.networkProcess(); return p != first && p.Alive() })
	answers("an answer after the network process was killed")
	second := w.networkProcess()
	cancel()
	if err := errors.Join(<-ended, w.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !second.Alive() {
		t.Fatal("the network process ended with the daemon")
	}
	w.reopen()
	if got := w.networkProcess(); got != second {
		t.Errorf("the next daemon has the network process %v, want %v", got, second)
	}
	if got := w.address(other); got != address {
		t.Errorf("after a restart: got the address %s, want %s", got, address)
	}
	answers("an answer after a restart of the daemon")
}

// networkProcess is the process that has the network of the pods; the zero process while it is being started.
func (w *world) networkProcess() (p shim.Process) {
	w.t.Helper()
	for _, dir := range []string{"/run", "/dev/shm"} {
		found, _ := filepath.Glob(dir + "/vk-process-*/network.pid") // the pattern is well-formed
		for _, path := range found {
			var process shim.Process
			// A record may be that of a daemon that was killed, and its number another process's by now.
			if durable.ReadJSON(path, &process) == nil && process.Alive() && w.networkLog(process) == filepath.Join(w.config.StateDir, "network.log") {
				return process
			}
		}
	}
	return p
}

// networkLog is the file that the network process writes to.
func (w *world) networkLog(p shim.Process) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", p.PID))
	return path
}

// TestSecurityK3PodWithoutItsInterfaceStopsNobody: a pod with NET_ADMIN may remove or replace the interface in its network namespace. The next
// daemon starts, and carries the packets of other pods.
func TestSecurityK3PodWithoutItsInterfaceStopsNobody(t *testing.T) {
	ownNetwork(t)
	w := open(t, nil)
	id := w.run("main", shell, "/busybox", "sleep", "600")
	other, _ := w.beside("other", true, nil)
	for name, attack := range map[string]string{"removes": "ip link del eth0", "replaces": "ip link del eth0; ip link add eth0 type dummy"} {
		pod, err := w.pod(func(c *runtimeapi.PodSandboxConfig) {
			c.Metadata = &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name}
		})
		if err != nil {
			t.Fatal(err)
		}
		first := w.sandbox
		w.sandbox = pod
		attacker := w.run(name, func(c *runtimeapi.ContainerConfig) {
			shell(c)
			c.Linux.SecurityContext.Capabilities = &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN"}}
		}, "/busybox", "sleep", "600")
		w.sandbox = first
		t.Logf("%s: %s", name, w.in(attacker, strings.ReplaceAll("/busybox "+attack, "; ip", "; /busybox ip")+" 2>&1; /busybox ip link show eth0 2>&1"))
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	w.until("an answer of the other pod", func() bool { return w.reached(id, w.address(other), "8080") })
}

// TestSecurityK3PodsOfTheMachineBeginAnew: pods that were in the network of the machine, by another configuration or an earlier version, do not
// stay in it where pods have their own.
func TestSecurityK3PodsOfTheMachineBeginAnew(t *testing.T) {
	ownNetwork(t)
	w := open(t, func(c *process.Config) { c.PodNetwork = process.PodNetworkHost })
	id := w.run("main", shell, "/busybox", "sleep", "600")
	ready := func() runtimeapi.PodSandboxState {
		t.Helper()
		s, err := w.PodSandboxStatus(t.Context(), w.sandbox, false)
		if err != nil {
			t.Fatal(err)
		}
		return s.GetStatus().GetState()
	}
	again := func(podNetwork string) {
		t.Helper()
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.config.PodNetwork = podNetwork
		w.reopen()
	}
	if again(process.PodNetworkHost); ready() != runtimeapi.PodSandboxState_SANDBOX_READY {
		t.Error("with the same configuration the pod begins anew")
	}
	if again(""); ready() != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Error("the pod stays in the network of the machine")
	}
	port, err := strconv.Atoi(machineServer(t))
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	defer near.Close()
	if err := w.StreamPort(t.Context(), w.sandbox, int32(port), far); err == nil || !strings.Contains(err.Error(), "no network") { //nolint:gosec // a port
		t.Errorf("a port of the machine is forwarded by way of the pod: %v", err)
	}
	if err := w.StopPodSandbox(t.Context(), w.sandbox); err != nil {
		t.Fatal(err)
	}
	w.ended(id)
}

// TestNetworkProcessEndsWithTheLastPod: a daemon that ends without pods leaves none.
func TestNetworkProcessEndsWithTheLastPod(t *testing.T) {
	ownNetwork(t)
	w := open(t, nil)
	p := w.networkProcess()
	if !p.Alive() {
		t.Fatal("there is no network process")
	}
	if err := w.RemovePodSandbox(t.Context(), w.sandbox); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.until("the end of the network process", func() bool { return !p.Alive() })
}

// TestHostPortLeadsToThePod: a port of the machine, which one pod has at a time.
func TestHostPortLeadsToThePod(t *testing.T) {
	ownNetwork(t)
	w := open(t, nil)
	port := freePort(t)
	mapped := func(c *runtimeapi.PodSandboxConfig) {
		c.PortMappings = []*runtimeapi.PortMapping{{HostPort: port, ContainerPort: 8080, HostIp: "127.0.0.1"}}
	}
	w.beside("server", true, mapped)
	w.answers(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if _, err := w.pod(mapped); err == nil || !strings.Contains(err.Error(), strconv.Itoa(int(port))) {
		t.Errorf("another pod with the port: got %v, want an error that names it", err)
	}
	sctp := func(c *runtimeapi.PodSandboxConfig) {
		c.PortMappings = []*runtimeapi.PortMapping{{HostPort: port, ContainerPort: 8080, Protocol: runtimeapi.Protocol_SCTP}}
	}
	if _, err := w.pod(sctp); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a port by SCTP: got %v", err)
	}
}

// TestHostPortThatIsTakenIsToldToThePod: somebody else takes a port of the machine while the network process is away. The pod has no network
// then, which an event of the pod says, until the port is free.
func TestHostPortThatIsTakenIsToldToThePod(t *testing.T) {
	ownNetwork(t)
	w := open(t, nil)
	port := freePort(t)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	w.beside("server", true, func(c *runtimeapi.PodSandboxConfig) {
		c.PortMappings = []*runtimeapi.PortMapping{{HostPort: port, ContainerPort: 8080, HostIp: "127.0.0.1"}}
	})
	w.answers(address)
	events := eventrecord.NewFakeRecorder(64)
	w.RecordPods(events, 100*time.Millisecond)
	p := w.networkProcess()
	if err := shim.KillProcess(p); err != nil {
		t.Fatal(err)
	}
	var taken net.Listener
	w.until("the port of the network process that ended", func() bool { // its last thread closes the port, which may be later than its end
		var err error
		taken, err = net.Listen("tcp4", address)
		return err == nil
	})
	defer taken.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	defer func() { <-ended }() //nolint:errcheck // it has none
	defer cancel()
	next := func(words ...string) {
		t.Helper()
		select {
		case got := <-events.Events:
			for _, want := range words {
				if !strings.Contains(got, want) {
					t.Errorf("got the event %q, want %s in it", got, want)
				}
			}
		case <-time.After(time.Minute):
			t.Fatalf("there is no event with %q", words)
		}
	}
	next("Warning NetworkNotReady", fmt.Sprintf("hostPort %d/tcp", port), "address already in use")
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	next("Normal NetworkReady")
	w.answers(address)
	if len(events.Events) > 0 {
		t.Errorf("it is told again: %s", <-events.Events)
	}
}

// freePort is a port of the machine that nobody has.
func freePort(t *testing.T) int32 {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port
}

// TestAddressesOfPodsAreTakenAgainLast: an address that was given back is the last that another pod gets.
func TestAddressesOfPodsAreTakenAgainLast(t *testing.T) {
	ownNetwork(t)
	w := open(t, func(c *process.Config) { c.PodCIDR = "10.200.0.0/29" }) // a gateway and five pods
	first := w.address(w.sandbox)
	seen := []string{first}
	for i := range 4 {
		sandbox, err := w.pod(func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Uid = strconv.Itoa(i) })
		if err != nil {
			t.Fatal(err)
		}
		address := w.address(sandbox)
		if slices.Contains(seen, address) {
			t.Errorf("pod %d has the address %s, after %v", i, address, seen)
		}
		seen = append(seen, address)
		if i == 0 {
			if err := w.RemovePodSandbox(t.Context(), sandbox); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sandbox, err := w.pod(func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Uid = "again" }); err != nil || w.address(sandbox) != seen[1] {
		t.Errorf("got %v, want the address %s, which was given back", err, seen[1])
	}
	if _, err := w.pod(func(c *runtimeapi.PodSandboxConfig) { c.Metadata.Uid = "none" }); err == nil || !strings.Contains(err.Error(), "podCIDR") {
		t.Errorf("a pod more than there are addresses: got %v", err)
	}
}

// TestSecurityK6TheNetworkOfTheMachineIsTheOperatorsWord: with podNetwork host a pod is in it, and gets no power over it.
func TestSecurityK6TheNetworkOfTheMachineIsTheOperatorsWord(t *testing.T) {
	w := open(t, func(c *process.Config) { c.PodNetwork = process.PodNetworkHost })
	if got := w.address(w.sandbox); got != "192.0.2.1" {
		t.Errorf("got the address %s, want the machine's", got)
	}
	for _, name := range []string{"NET_ADMIN", "net_raw", "CAP_SYS_ADMIN", "ALL"} {
		_, err := w.tryRun("c-"+name, func(c *runtimeapi.ContainerConfig) {
			c.Linux.SecurityContext.Capabilities = &runtimeapi.Capability{AddCapabilities: []string{name}}
		}, "sleep", "1")
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "podNetwork") {
			t.Errorf("%s: got %v, want it refused by its name and the setting", name, err)
		}
	}
	if id := w.run("plain", func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.Capabilities = &runtimeapi.Capability{AddCapabilities: []string{"CHOWN"}}
	}, "exit", "0"); w.ended(id).GetExitCode() != 0 {
		t.Error("a capability that gives no power over the machine is refused")
	}
}

// TestSecurityK6NetAdminIsPowerOverThePodOnly: a container that may configure a network configures that of its pod.
func TestSecurityK6NetAdminIsPowerOverThePodOnly(t *testing.T) {
	ownNetwork(t)
	w := open(t, nil)
	id := w.run("admin", func(c *runtimeapi.ContainerConfig) {
		shell(c)
		c.Linux.SecurityContext.Capabilities = &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN"}}
	}, "/busybox", "sleep", "600")
	const address = "10.99.98.7"
	said := w.in(id, "/busybox ip addr add "+address+"/32 dev lo; echo ended with $?; /busybox ip addr")
	if !strings.Contains(said, "ended with 0") || !strings.Contains(said, address) {
		t.Errorf("the pod cannot configure its own network: %s", said)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if strings.HasPrefix(a.String(), address) {
			t.Errorf("the machine has the address %s", a)
		}
	}
}
