// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/podnet"
)

// scriptedProcess answers like the network process, and records the requests.
type scriptedProcess struct {
	mu    sync.Mutex
	asked []string
	// hangs is closed when requests that contain the word may be answered. If the word is empty, all requests are
	// answered at once.
	hangs chan struct{}
	word  string
}

func (p *scriptedProcess) serve(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unixpacket", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go p.answer(c)
		}
	}()
	return socket
}

func (p *scriptedProcess) answer(c net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		if err != nil || n == 0 {
			return
		}
		p.mu.Lock()
		p.asked = append(p.asked, string(b[:n]))
		word := p.word
		p.mu.Unlock()
		if word != "" && strings.Contains(string(b[:n]), word) {
			<-p.hangs
		}
		answer, _ := json.Marshal(map[string]int{"version": podnet.Version})
		_, _ = c.Write(answer)
	}
}

func (p *scriptedProcess) wasAsked(words string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.asked, func(text string) bool { return strings.Contains(text, words) })
}

// networkOf returns a network that uses the process p.
func networkOf(t *testing.T, p *scriptedProcess) *userNetwork {
	t.Helper()
	prefix := netip.MustParsePrefix("10.88.0.0/22")
	n := &userNetwork{
		process: &networkProcess{socket: p.serve(t), cgroups: &cgroups{}}, nameservers: func() []string { return []string{} }, services: func() []podnet.Service { return []podnet.Service{} },
		prefix: prefix, gateway: prefix.Addr().Next(), last: prefix.Addr().Next(), pods: map[netip.Addr]*sandbox{}, every: followEvery, tell: func(*sandbox, string) {},
	}
	if err := n.sendConfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestServicesReachPodsAfterARestartOfTheDaemon(t *testing.T) {
	p := &scriptedProcess{}
	n := networkOf(t, p)
	// A daemon gets the services only after its start, while pods of an earlier daemon already exist.
	n.services = func() []podnet.Service {
		return []podnet.Service{{Protocol: "tcp", Address: "10.96.0.1", Port: 443, Target: "192.0.2.1:6443"}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { n.run(ctx) })
	for end := time.Now().Add(20 * time.Second); !p.wasAsked("192.0.2.1:6443"); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the network process was not told")
		}
	}
}

func TestProbesDoNotWaitForTheNetworkProcess(t *testing.T) {
	p := &scriptedProcess{hangs: make(chan struct{}), word: `"detach"`}
	n := networkOf(t, p)
	n.tunnels = true
	s := &sandbox{id: "a"}
	address, err := n.takeAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() { left <- n.leaveNetwork(t.Context(), s) }()
	for !p.wasAsked(`"detach"`) {
		<-time.After(time.Millisecond)
	}
	answered := make(chan bool, 1)
	go func() { answered <- n.HasPod(address) }()
	select {
	case has := <-answered:
		if !has {
			t.Error("the address is free before the network process has let go of it")
		}
	case <-time.After(20 * time.Second):
		t.Error("a probe waits for the end of another pod")
	}
	close(p.hangs)
	if err := <-left; err != nil || n.HasPod(address) {
		t.Errorf("after leave: %v", err)
	}
}

func TestSecurityK6ProbesReachNothingThatPodsDoNot(t *testing.T) {
	n := networkOf(t, &scriptedProcess{})
	n.denied = []string{"10.98.0.0/16"}
	for _, address := range []string{"10.98.0.2", "10.88.0.77", "127.0.0.1", "::1", "2001:db8::1", "0.0.0.0"} {
		if err := n.CheckReachable(netip.MustParseAddr(address)); err == nil {
			t.Errorf("a probe may connect with %s", address)
		}
	}
	if err := n.CheckReachable(netip.MustParseAddr("203.0.113.7")); err != nil {
		t.Error(err)
	}
}

func TestWhatAKilledDaemonHasAttachedIsDetached(t *testing.T) {
	p := &scriptedProcess{}
	n := networkOf(t, p)
	addresses, err := n.joinNetwork(t.Context(), &sandbox{id: "a"})
	if err != nil || !p.wasAsked(`{"op":"detach","address":"`+addresses[0]+`"}`) {
		t.Errorf("%v, %v: the network process was asked %q", addresses, err, p.asked)
	}
}

func TestReplacedNetworkProcessIsSeen(t *testing.T) {
	n := networkOf(t, &scriptedProcess{})
	seen := make(chan bool, 1)
	go func() { seen <- n.waitForEnd(t.Context()) }()
	n.nameservers = func() []string { return []string{"192.0.2.53:53"} }
	if err := n.sendConfig(t.Context()); err != nil { // a join does the same, perhaps after the process has ended
		t.Fatal(err)
	}
	select {
	case again := <-seen:
		if !again {
			t.Error("the daemon is about to end")
		}
	case <-time.After(20 * time.Second):
		t.Error("nobody attaches the pods again")
	}
}

func TestSilentNetworkProcessIsEnded(t *testing.T) {
	p := &scriptedProcess{hangs: make(chan struct{})}
	n := networkOf(t, p)
	there := func() bool { _, err := os.Stat(n.process.socket); return err == nil }
	if err := n.endSilent(t.Context(), 100*time.Millisecond); err != nil || !there() {
		t.Errorf("one that answers is ended: %v", err)
	}
	p.mu.Lock()
	p.word = `"version"`
	p.mu.Unlock()
	defer close(p.hangs)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.endSilent(gone, 100*time.Millisecond); err != nil || !there() {
		t.Errorf("it is ended by a daemon that ends: %v", err)
	}
	if err := n.endSilent(t.Context(), 100*time.Millisecond); err != nil || there() {
		t.Errorf("one that is silent stays: %v", err)
	}
}
