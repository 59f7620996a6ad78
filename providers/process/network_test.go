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
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// network writes the configuration of a CNI network that only this machine can reach. Each address in use is a
// file in leases.
func network(t *testing.T) (file, leases string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("networks of pods need the rights of root")
	}
	if _, err := os.Stat("/usr/lib/cni/ptp"); err != nil {
		t.Skip("the CNI plugins are not there; install containernetworking-plugins")
	}
	dir := t.TempDir()
	file = filepath.Join(dir, "pods.conflist")
	n, err := subnet()
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "vktest%d", "plugins": [
		{"type": "ptp", "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "198.51.100.%d/29"}]]}}]}`, os.Getpid(), dir, n*8)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, filepath.Join(dir, fmt.Sprintf("vktest%d", os.Getpid()))
}

// keepsSubnet keeps a reference to the socket of subnet, because the garbage collector would close it.
var keepsSubnet net.Listener

// subnet returns the number of a subnet that no other test process uses, in a range reserved for documentation.
// An abstract socket keeps the subnet until the process ends.
var subnet = sync.OnceValues(func() (int, error) {
	const subnets = 32
	for i := range subnets {
		n := (os.Getpid() + i) % subnets
		var config net.ListenConfig
		listener, err := config.Listen(context.Background(), "unix", fmt.Sprintf("@vk-process-test-subnet-%d", n))
		if err == nil {
			keepsSubnet = listener
			return n, nil
		}
	}
	return 0, errors.New("every subnet for tests is taken")
})

func (w *world) address(sandbox string) string {
	w.t.Helper()
	s, err := w.PodSandboxStatus(w.t.Context(), sandbox, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.GetStatus().GetNetwork().GetIp()
}

// answers waits until the demo answers at an address.
func (w *world) answers(address string) {
	w.t.Helper()
	client := http.Client{Timeout: time.Second}
	w.until("an answer of "+address, func() bool {
		response, err := client.Get("http://" + address + "/")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

func serves(c *runtimeapi.ContainerConfig) {
	c.Envs = []*runtimeapi.KeyValue{{Key: "PORT", Value: []byte("8080")}}
}

// Two pods listen on the same port, each at its own address. The next daemon finds them there. Their addresses
// are free once the pods are gone.
func TestPodsWithANetworkOfTheirOwn(t *testing.T) {
	file, leases := network(t)
	w := open(t, func(c *process.Config) { c.PodNetwork, c.CNIPlugins = file, []string{"/usr/lib/cni"} })
	first := w.sandbox
	second, err := w.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "q", Namespace: "default", Uid: "u2"}, LogDirectory: w.logs,
		Linux: &runtimeapi.LinuxPodSandboxConfig{Sysctls: map[string]string{"net.ipv4.ip_local_port_range": "40000 40100"}},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.RemovePodSandbox(context.WithoutCancel(t.Context()), second); err != nil {
			t.Error(err)
		}
	})
	w.run("first", serves)
	w.sandbox = second
	id := w.run("second", serves)
	w.sandbox = first
	addresses := []string{w.address(first), w.address(second)}
	if addresses[0] == addresses[1] || addresses[0] == "192.0.2.1" {
		t.Fatalf("got the addresses %v, want one for each pod", addresses)
	}
	for _, address := range addresses {
		w.answers(net.JoinHostPort(address, "8080"))
	}
	out, _, err := w.ExecSync(t.Context(), id, []string{"cat", "/proc/sys/net/ipv4/ip_local_port_range"}, time.Minute)
	if err != nil || strings.Fields(string(out))[0] != "40000" {
		t.Errorf("a command in the pod sees the ports %q, %v, want those of its network", out, err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	if got := w.address(second); got != addresses[1] {
		t.Errorf("after a restart: got the address %s, want %s", got, addresses[1])
	}
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- w.StreamPort(t.Context(), second, 8080, far) }()
	if _, err := io.WriteString(near, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 15)
	if _, err := io.ReadFull(near, line); err != nil || string(line) != "HTTP/1.0 200 OK" {
		t.Errorf("through a forwarded port: got %q, %v", line, err)
	}
	near.Close()
	<-ended //nolint:errcheck // how it ended does not matter
	for _, sandbox := range []string{first, second} {
		if err := w.RemovePodSandbox(t.Context(), sandbox); err != nil {
			t.Error(err)
		}
	}
	for _, address := range addresses {
		if _, err := os.Stat(filepath.Join(leases, address)); !os.IsNotExist(err) {
			t.Errorf("the address %s is still taken: %v", address, err)
		}
	}
}

// A pod with hostNetwork is in the network of the machine.
func TestAPodInTheNetworkOfTheMachine(t *testing.T) {
	file, _ := network(t)
	w := open(t, func(c *process.Config) { c.PodNetwork, c.CNIPlugins = file, []string{"/usr/lib/cni"} })
	sandbox, err := w.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "q", Namespace: "default", Uid: "u2"},
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.address(sandbox); got != "192.0.2.1" {
		t.Errorf("got the address %s, want the machine's", got)
	}
	if err := w.RemovePodSandbox(t.Context(), sandbox); err != nil {
		t.Error(err)
	}
}

// A sandbox whose namespace is lost, for example after a reboot, is recreated, and its address is released.
func TestANetworkThatIsLost(t *testing.T) {
	file, leases := network(t)
	w := open(t, func(c *process.Config) { c.PodNetwork, c.CNIPlugins = file, []string{"/usr/lib/cni"} })
	address := w.address(w.sandbox)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := unmount(filepath.Join(w.config.StateDir, "sandboxes", w.sandbox, "netns")); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	s, err := w.PodSandboxStatus(t.Context(), w.sandbox, false)
	if err != nil || s.GetStatus().GetState() != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("got the state %s, %v, want one that is not ready", s.GetStatus().GetState(), err)
	}
	if err := w.StopPodSandbox(t.Context(), w.sandbox); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(leases, address)); !os.IsNotExist(err) {
		t.Errorf("the address %s is still taken: %v", address, err)
	}
}

func TestANetworkThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pods.conflist")
	if err := os.WriteFile(file, []byte(`{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "no-such-plugin"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	needRunc(t)
	_, err := process.Open(t.Context(), process.Config{StateDir: t.TempDir(), Isolation: process.IsolationRunc, PodNetwork: file}, "n1", "192.0.2.1")
	if err == nil || !strings.Contains(err.Error(), "podNetwork") {
		t.Errorf("got %v, want an error that names the setting", err)
	}
}

func unmount(path string) error { return unix.Unmount(path, unix.MNT_DETACH) }
