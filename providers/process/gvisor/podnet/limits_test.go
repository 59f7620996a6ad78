// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"bytes"
	"math"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// open opens a connection to the echo server of the machine, and waits for its answer.
func (g *guest) open() error {
	c, err := g.dial("10.98.7.7", 443)
	if err != nil {
		return err
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

func TestSecurityK3ConnectionsOfAPodAreLimited(t *testing.T) {
	needInternet(t)
	c := testConfig()
	d := startDaemon(t, &c)
	greedy, other := d.guest("ns/a", "10.88.0.5"), d.guest("ns/b", "10.88.0.6")
	const limit = 8
	d.network.findPod(greedy.address.As4()).connections.limit = limit
	first := greedy.mustDial("10.98.7.7", 443)
	for range limit - 1 {
		if err := greedy.open(); err != nil {
			t.Fatal(err)
		}
	}
	if err := greedy.open(); err == nil {
		t.Errorf("%d connections, want %d at most", limit+1, limit)
	}
	if err := other.open(); err != nil {
		t.Errorf("another pod: %v", err)
	}
	_ = first.Close()
	for end := time.Now().Add(patience); greedy.open() != nil; {
		if time.Now().After(end) {
			t.Fatal("a connection that has ended still counts")
		}
	}
}

func TestSecurityK3HalfOpenConnectionsOfAPodAreLimited(t *testing.T) {
	needInternet(t)
	c := testConfig()
	d := startDaemon(t, &c)
	greedy, other := d.guest("ns/a", "10.88.0.5"), d.guest("ns/b", "10.88.0.6")
	const limit = 4
	p := d.network.findPod(greedy.address.As4())
	p.halfOpen.limit = limit
	asked, answer := make(chan bool, 2*limit), make(chan bool)
	d.network.owns = func(netip.Addr) (bool, error) { asked <- true; <-answer; return true, nil }
	t.Cleanup(func() { close(answer) })
	for range limit {
		go func() { _, _ = greedy.dial(internetAddress, 80) }()
	}
	for range limit {
		<-asked
	}
	start := time.Now()
	if _, err := greedy.dial("10.98.7.7", 443); err == nil || time.Since(start) > patience/2 {
		t.Errorf("one more than %d: %v after %v, want it refused at once", limit, err, time.Since(start))
	}
	if err := other.open(); err != nil {
		t.Errorf("another pod: %v", err)
	}
}

func TestSecurityK3FlowsOfAPodAreLimited(t *testing.T) {
	needInternet(t)
	c := testConfig()
	d := startDaemon(t, &c)
	greedy, other := d.guest("ns/a", "10.88.0.5"), d.guest("ns/b", "10.88.0.6")
	const limit = 4
	d.network.findPod(greedy.address.As4()).flows.limit = limit
	for range limit {
		if _, err := greedy.exchange("10.98.7.7", 53, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := greedy.exchangeWithin(time.Second/2, "10.98.7.7", 53, "x"); err == nil {
		t.Errorf("flow %d answered %q", limit+1, got)
	}
	if _, err := other.exchange("10.98.7.7", 53, "x"); err != nil {
		t.Errorf("another pod: %v", err)
	}
}

func TestSecurityK3NobodyWaitsForAPodThatDoesNotRead(t *testing.T) {
	c := testConfig()
	d := startDaemon(t, &c)
	card := func(name, address string) int {
		network, sandbox := pair(t)
		t.Cleanup(func() { _ = unix.Close(network); _ = unix.Close(sandbox) })
		setPatience(t, sandbox)
		if _, a := ask(t, d.socket, Request{Op: OpAttach, Pod: &Pod{Name: name, Address: netip.MustParseAddr(address)}}, network); a.Error != "" {
			t.Fatal(a.Error)
		}
		return sandbox
	}
	flooder, victim, third := card("ns/a", "10.88.0.5"), card("ns/b", "10.88.0.6"), d.guest("ns/c", "10.88.0.7")
	flood := append(packet("10.88.0.5", "10.88.0.6", 80), make([]byte, 50000)...)
	flood[2], flood[3] = byte(len(flood)>>8), byte(len(flood))
	for range 200 { // 10 MB
		if err := unix.Sendto(flooder, flood, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // and space too small for the others to fill
		if err := unix.Sendto(flooder, packet("10.88.0.5", "10.88.0.6", 80), 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	// The packets of the flooder stay in order: when the last one has passed, all have.
	if err := unix.Sendto(flooder, packet("10.88.0.5", "10.88.0.7", 4242), 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := third.ping(testGateway.String(), patience); err != nil {
		t.Errorf("a third pod: %v", err)
	}
	full := d.network.findPod([4]byte{10, 88, 0, 6}).nic
	full.mu.Lock()
	held := full.bytes
	full.mu.Unlock()
	if held == 0 || held > maxQueue {
		t.Errorf("%d bytes wait for the pod, want some, and %d at most", held, maxQueue)
	}
	// There is room for the packet of the third pod, and it arrives.
	small := packet("10.88.0.7", "10.88.0.6", 4343)
	view := d.network.findPod([4]byte{10, 88, 0, 7})
	handleBytes(view, small)
	b := make([]byte, 1<<16)
	for {
		n, err := unix.Read(victim, b)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(b[:n], small) {
			return
		}
	}
}

func TestSecurityK3APodGetsNoMoreThanItLeaves(t *testing.T) {
	s := supply{free: 100}
	takeAll := func(a *allowance) (n int) {
		for a.takeUnits(1) {
			n++
		}
		return n
	}
	a, b := allowance{of: &s, limit: math.MaxInt}, allowance{of: &s, limit: math.MaxInt}
	if got := takeAll(&a); got != 50 {
		t.Errorf("the first pod has %d of 100, want 50", got)
	}
	if got := takeAll(&b); got != 25 {
		t.Errorf("the second one has %d, want 25", got)
	}
	a.returnUnits(50)
	if got := takeAll(&b); got != 25 || s.free != 50 {
		t.Errorf("the second one has %d more, and %d are left, want 25 and 50", got, s.free)
	}
	limited := allowance{of: &s, limit: 10}
	if got := takeAll(&limited); got != 10 {
		t.Errorf("a limit of 10 gave %d", got)
	}
}

func TestSecurityK3BuffersOfAPodAreLimited(t *testing.T) {
	s := supply{free: maxMemory}
	a := allowance{of: &s, limit: maxPodMemory}
	sum, n := 0, 0
	for ; n < maxConnections; n++ {
		share := a.takeShare(minShare, maxShare)
		if share == 0 {
			t.Fatalf("connection %d has no buffers", n)
		}
		sum += share
	}
	if most := maxPodMemory + n*minShare; sum > most || s.free != maxMemory-sum {
		t.Errorf("%d connections have %d bytes, want %d at most; %d are left", n, sum, most, s.free)
	}
	small := supply{free: minShare}
	b := allowance{of: &small, limit: maxPodMemory}
	if got := b.takeShare(minShare, maxShare); got != 0 {
		t.Errorf("without memory there came %d bytes", got)
	}
}

func TestSecurityK3PodsDoNotWriteToTheLog(t *testing.T) {
	p := startProcess(t, user(os.Geteuid()), testConfig())
	network, card := pair(t)
	defer unix.Close(network)
	defer unix.Close(card)
	p.attach(Pod{Name: "ns/a", Address: netip.MustParseAddr("10.88.0.5")}, network)
	for _, to := range []string{"127.0.0.1", "0.0.0.0", testGateway.String()} { // the stack has an error message for the first address
		if err := unix.Sendto(card, packet("10.88.0.5", to, 80), 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	b := make([]byte, 1<<16)
	if _, err := unix.Read(card, b); err != nil { // the gateway refuses the last one
		t.Fatal(err)
	}
	p.end(syscall.SIGTERM)
	for line := range strings.Lines(p.log.String()) {
		if !strings.HasPrefix(line, "podnet: ") {
			t.Errorf("the log has %q", line)
		}
	}
}

// TestSecurityK3TheStackKeepsNoPacketsToPutTogether checks that the stack does not reassemble fragments: all
// pods would share the memory for fragments.
func TestSecurityK3TheStackKeepsNoPacketsToPutTogether(t *testing.T) {
	c := testConfig()
	d := startDaemon(t, &c)
	d.guest("ns/a", "10.88.0.5")
	p := d.network.findPod([4]byte{10, 88, 0, 5})
	for name, test := range map[string]struct {
		change func(b []byte)
		want   bool
	}{
		"whole":          {func([]byte) {}, true},
		"first fragment": {func(b []byte) { b[6] = 0x20 }, false},
		"last fragment":  {func(b []byte) { b[7] = 1 }, false},
		"options":        {func(b []byte) { b[0] = 0x46 }, false},
		"protocol":       {func(b []byte) { b[9] = 47 }, false},
		"a group":        {func(b []byte) { b[16] = 224 }, false},
		"a ping":         {func(b []byte) { b[9], b[20] = 1, 8 }, false},
	} {
		b := packet("10.88.0.5", internetAddress, 80)
		test.change(b)
		if got := p.forStack(b, address(b[16:20])); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
