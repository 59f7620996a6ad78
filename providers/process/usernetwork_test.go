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

// ownNetwork skips a test of the rootless network if the isolation of the tests does not have that network.
func ownNetwork(t *testing.T) {
	t.Helper()
	if testConfig("", "").Isolation == process.IsolationRunc && gvisorProgram() != "" {
		return // in network namespaces
	}
	onGVisor(t)
}

// beside starts another pod with a shell and, if serve is set, a server at port 8080.
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

// machineServer starts a server at all addresses of the machine.
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

// reached reports whether a container reaches a server. Any other failure of the program fails the test.
func (w *world) reached(container, address, port string) bool {
	w.t.Helper()
	said := w.in(container, "/busybox timeout 5 /busybox wget -q -O /dev/null http://"+net.JoinHostPort(address, port)+"/; echo ended with $?")
	switch {
	case strings.HasPrefix(said, "ended with 0\n"):
		return true
	case strings.Contains(said, "ended with 1\n") && strings.Contains(said, "can't connect"):
		return false
	}
	w.t.Fatalf("%s:%s: got %q", address, port, said) // refused addresses must fail at once
	return false
}

// TestSecurityK1APodDoesNotReachTheMachine checks that a pod reaches no address of the machine, no loopback
// interface of another pod, and no link-local or metadata address. It does reach the addresses of other pods. A
// pod in the network of the machine reaches every listener there.
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

// TestSecurityK5ASandboxHasNoRights checks that the process of the pod's kernel has its own user namespace and
// network namespace, and none of the rights that a process of the machine's network needs.
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

// TestNetworkProcessIsStartedAgain checks that pods keep running with the same addresses after the network process was
// killed, and with the next daemon.
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

// networkProcess returns the process that runs the network of the pods, or the zero process while it is being
// started.
func (w *world) networkProcess() (p shim.Process) {
	w.t.Helper()
	for _, dir := range []string{"/run", "/dev/shm"} {
		found, _ := filepath.Glob(dir + "/vk-process-*/network.pid") // the pattern is well-formed
		for _, path := range found {
			var process shim.Process
			// The record may be from a killed daemon, and its process number may belong to another process by
			// now.
			if durable.ReadJSON(path, &process) == nil && process.Alive() && w.networkLog(process) == filepath.Join(w.config.StateDir, "network.log") {
				return process
			}
		}
	}
	return p
}

// networkLog returns the log file of the network process.
func (w *world) networkLog(p shim.Process) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", p.PID))
	return path
}

// TestSecurityK3PodWithoutItsInterfaceStopsNobody checks that the next daemon starts and carries the packets of
// other pods, although a pod with NET_ADMIN has removed or replaced the interface in its network namespace.
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

// TestSecurityK3PodsOfTheMachineBeginAnew checks that pods in the host network, because of an earlier
// configuration or version, are recreated once pods have their own network.
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

// TestNetworkProcessEndsWithTheLastPod checks that a daemon that ends without pods leaves no network process.
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

// TestHostPortLeadsToThePod checks that a host port leads to its pod, and that only one pod has the port at a
// time.
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

// TestHostPortThatIsTakenIsToldToThePod lets another process take a host port while the network process is away.
// The pod then has no network until the port is free, and an event of the pod reports this.
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
	w.until("the port of the network process that ended", func() bool { // the last thread closes the port, perhaps after the end of the process
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

// freePort returns an unused port of the machine.
func freePort(t *testing.T) int32 {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port
}

// TestAddressesOfPodsAreTakenAgainLast checks that a released address is the last one to be given to another
// pod.
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

// TestSecurityK6TheNetworkOfTheMachineIsTheOperatorsWord checks that pods are in the network of the machine if
// podNetwork is host, but may not configure it.
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

// TestSecurityK6NetAdminIsPowerOverThePodOnly checks that a container with NET_ADMIN configures only the network
// of its pod.
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
