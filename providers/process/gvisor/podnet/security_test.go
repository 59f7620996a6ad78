// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// forbidden returns the addresses with listeners that no pod may reach.
func forbidden() []string {
	return append([]string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", // the machine
		machineAddress, "192.0.2.77", "192.0.2.200", // addresses of an interface, of lo, and of a range that is routed to the machine
		"10.99.0.255", "255.255.255.255", "224.0.0.1", "240.0.0.1", // groups
		"169.254.77.1", "169.254.169.254", // link-local
		testGateway.String(),
		deniedByConfig,
	}, metadata...)
}

// silentlyRefused reports whether a packet to the address gets no answer from any host, not even a refusal.
func silentlyRefused(a string) bool {
	first := netip.MustParseAddr(a).As4()[0]
	return first == 0 || first == 127 || first >= 224
}

func TestSecurityK1PodsReachNoAddressOfTheMachine(t *testing.T) {
	needInternet(t)
	c := testConfig()
	g := startDaemon(t, &c).guest("ns/a", "10.88.0.5")
	if err := g.ping(testGateway.String(), patience); err != nil {
		t.Fatal(err)
	}
	var tests sync.WaitGroup
	defer tests.Wait()
	for _, a := range forbidden() {
		wait := patience
		if silentlyRefused(a) {
			wait = time.Second
		}
		tests.Go(func() {
			start := time.Now()
			if _, err := g.dialWithin(wait, a, helloPort); err == nil {
				t.Errorf("%s: connected", a)
			} else if !silentlyRefused(a) && time.Since(start) > patience/2 {
				t.Errorf("%s: %v after %v, want it refused at once", a, err, time.Since(start))
			}
		})
		tests.Go(func() {
			start := time.Now()
			if got, err := g.exchangeWithin(wait, a, echoPort, "x"); err == nil {
				t.Errorf("%s: UDP answered %q", a, got)
			} else if !silentlyRefused(a) && time.Since(start) > patience/2 {
				t.Errorf("%s: UDP: %v after %v, want it refused at once", a, err, time.Since(start))
			}
		})
		if a != testGateway.String() {
			tests.Go(func() {
				if g.ping(a, time.Second) == nil {
					t.Errorf("%s: answered a ping", a)
				}
			})
		}
	}
	if err := g.ping(internetAddress, time.Second); err == nil {
		t.Error("a ping went out")
	}
}

func TestSecurityK1AddressesThatAreNoIPv4Address(t *testing.T) {
	p := newPolicy(testConfig())
	nobody := func(netip.Addr) (bool, error) { return false, nil }
	for _, a := range forbidden() {
		for _, address := range []string{a, "::ffff:" + a} {
			if a == machineAddress || a == "10.99.0.255" || strings.HasPrefix(a, "192.0.2.") {
				continue // the kernel knows
			}
			to := netip.AddrPortFrom(netip.MustParseAddr(address), 80)
			if targets, err := p.connectionTargets(endpoint{ProtocolTCP, to}, nobody); err == nil {
				t.Errorf("%s leads to %v", to, targets)
			}
		}
	}
	for _, address := range []string{"::1", "fe80::1", "2001:db8::1", "fd00:ec2::254"} {
		if targets, err := p.connectionTargets(endpoint{ProtocolTCP, netip.AddrPortFrom(netip.MustParseAddr(address), 80)}, nobody); err == nil {
			t.Errorf("%s leads to %v", address, targets)
		}
	}
	c := testConfig()
	c.Denied = []netip.Prefix{netip.MustParsePrefix("::ffff:203.0.113.0/120"), netip.MustParsePrefix("fd00::/8")}
	if targets, err := newPolicy(c).connectionTargets(endpoint{ProtocolTCP, netip.MustParseAddrPort("203.0.113.7:80")}, nobody); err == nil {
		t.Errorf("an address that is denied in the form of IPv6 leads to %v", targets)
	}
	broken := func(netip.Addr) (bool, error) { return false, unix.EIO }
	if targets, err := p.connectionTargets(endpoint{ProtocolTCP, netip.MustParseAddrPort("203.0.113.7:80")}, broken); err == nil {
		t.Errorf("without an answer of the kernel it leads to %v", targets)
	}
	if targets, err := (*policy)(nil).connectionTargets(endpoint{ProtocolTCP, netip.MustParseAddrPort("203.0.113.7:80")}, nobody); err == nil {
		t.Errorf("without a configuration it leads to %v", targets)
	}
}

func TestSecurityK1SandboxesReachNoAddressOfTheMachine(t *testing.T) {
	needInternet(t)
	eachUser(t, func(t *testing.T, u user) {
		p := startProcess(t, u, testConfig())
		s := p.sandbox("a", "10.88.0.5")
		// The loopback interface of the sandbox has the same listeners, and their answers say so.
		for _, a := range forbidden() {
			if strings.HasPrefix(a, "127.") || a == "0.0.0.0" || a == "0.1.2.3" || strings.HasPrefix(a, "2") {
				continue // the packet never leaves the sandbox
			}
			for _, address := range []string{a + ":13", "[::ffff:" + a + "]:13"} {
				if got, err := s.exec("dial", "tcp", address); err == nil || !strings.Contains(got, "refused") {
					t.Errorf("%s: %q, %v, want it refused", address, got, err)
				}
			}
		}
	})
}

// packet returns an IPv4 packet with a UDP datagram.
func packet(from, to string, port uint16) []byte {
	b := make([]byte, 29)
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	f, t := netip.MustParseAddr(from).As4(), netip.MustParseAddr(to).As4()
	copy(b[12:], f[:])
	copy(b[16:], t[:])
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum+sum>>16))
	binary.BigEndian.PutUint16(b[20:], 1000)
	binary.BigEndian.PutUint16(b[22:], port)
	binary.BigEndian.PutUint16(b[24:], uint16(len(b)-20))
	return b
}

func TestSecurityK2PodsSendFromTheirAddress(t *testing.T) {
	c := testConfig()
	d := startDaemon(t, &c)
	attach := func(name, address string) (card int) {
		network, sandbox := pair(t)
		t.Cleanup(func() { _ = unix.Close(network); _ = unix.Close(sandbox) })
		setPatience(t, sandbox)
		if _, a := ask(t, d.socket, Request{Op: OpAttach, Pod: &Pod{Name: name, Address: netip.MustParseAddr(address)}}, network); a.Error != "" {
			t.Fatal(a.Error)
		}
		return sandbox
	}
	attacker, victim := attach("ns/a", "10.88.0.5"), attach("ns/b", "10.88.0.6")
	longer := packet("10.88.0.5", "10.88.0.6", 80)
	longer[3]++ // its length field exceeds its length
	v6 := append([]byte{0x60}, make([]byte, 59)...)
	for _, p := range [][]byte{
		packet("10.88.0.7", "10.88.0.6", 80), packet("10.88.0.1", "10.88.0.6", 80), packet("127.0.0.1", "10.88.0.6", 80),
		packet("10.88.0.6", "10.88.0.6", 80), longer, v6, {0x45},
		packet("10.88.0.5", "10.88.0.6", 4242), // the attacker's own address: once this packet arrives, all earlier ones have passed
	} {
		if err := unix.Sendto(attacker, p, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	b := make([]byte, 1<<16)
	n, err := unix.Read(victim, b)
	if err != nil || n < 24 || binary.BigEndian.Uint16(b[22:]) != 4242 {
		t.Errorf("the victim got % x, %v", b[:max(n, 0)], err)
	}
}

func TestSecurityK2ErrorsAreAboutOwnPackets(t *testing.T) {
	c := testConfig()
	d := startDaemon(t, &c)
	p := newPod(d.network, Pod{Name: "ns/a", Address: netip.MustParseAddr("10.88.0.5")}, nil)
	unreachable := func(from, to string) []byte {
		b := append(packet("10.88.0.5", "10.88.0.1", 0)[:20], 3, 3, 0, 0, 0, 0, 0, 0)
		b = append(b, packet(from, to, 4242)...)
		b[9] = unix.IPPROTO_ICMP
		return b
	}
	gateway := address(testGateway.As4())
	if !p.forStack(unreachable("10.88.0.1", "10.88.0.5"), gateway) {
		t.Error("an error about a packet of the gateway to the pod is dropped")
	}
	for _, about := range [][2]string{{internetAddress, "10.88.0.6"}, {"10.88.0.1", "10.88.0.6"}, {internetAddress, "10.88.0.5"}} {
		if p.forStack(unreachable(about[0], about[1]), gateway) {
			t.Errorf("an error about a packet from %s to %s is taken from 10.88.0.5", about[0], about[1])
		}
	}
	if p.forStack(unreachable("10.88.0.1", "10.88.0.5")[:40], gateway) {
		t.Error("an error about a part of a header is taken")
	}
}

func TestSecurityK4TheProcessHasNoRights(t *testing.T) {
	eachUser(t, func(t *testing.T, u user) {
		p := startProcess(t, u, testConfig())
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		uid, effective := int(u), "0000000000000000"
		if u == 0 {
			uid, effective = nobody, "0000000000000400" // CAP_NET_BIND_SERVICE
		}
		for _, want := range []string{
			fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d", uid), fmt.Sprintf("Gid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d", uid), "CapEff:\t" + effective, "CapPrm:\t" + effective,
			"CapInh:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
		} {
			if !strings.Contains(string(status), want+"\n") {
				t.Errorf("the status of the process lacks %q:\n%s", want, status)
			}
		}
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", p.cmd.Process.Pid, thread.Name()))
			if err == nil && (!strings.Contains(string(status), "CapEff:\t"+effective) || !strings.Contains(string(status), "Seccomp:\t2")) {
				t.Errorf("thread %s has other rights:\n%s", thread.Name(), status)
			}
		}
		if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.cmd.Process.Pid)); err != nil || cwd != "/" {
			t.Errorf("its directory is %q, %v", cwd, err)
		}
	})
}

// TestSecurityK4TheFilterForbids compares the filter with the system calls of a process that takes over the
// machine.
func TestSecurityK4TheFilterForbids(t *testing.T) {
	rules := allowedCalls()
	for name, call := range map[string]uintptr{
		"openat": unix.SYS_OPENAT, "execve": unix.SYS_EXECVE, "execveat": unix.SYS_EXECVEAT, "clone3": unix.SYS_CLONE3, "ptrace": unix.SYS_PTRACE, "kill": unix.SYS_KILL,
		"mount": unix.SYS_MOUNT, "unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS, "bpf": unix.SYS_BPF, "io_uring_setup": unix.SYS_IO_URING_SETUP,
		"process_vm_readv": unix.SYS_PROCESS_VM_READV, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "setuid": unix.SYS_SETUID, "capset": unix.SYS_CAPSET,
	} {
		if rules.Has(call) {
			t.Errorf("%s is allowed", name)
		}
	}
}

func TestSecurityK4SandboxesHaveNamespacesOfTheirOwn(t *testing.T) {
	needInternet(t)
	own := func(t *testing.T, s *sandbox) (status string) {
		t.Helper()
		for _, ns := range []string{"user", "net"} {
			its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", s.pid, ns))
			mine, err2 := os.Readlink("/proc/self/ns/" + ns)
			if err != nil || err2 != nil || its == mine {
				t.Errorf("the sandbox is in %s, as this process is, %v, %v", its, err, err2)
			}
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
		if err != nil {
			t.Fatal(err)
		}
		devices, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", s.pid))
		if lines := strings.Count(string(devices), "\n"); err != nil || lines != 3 { // two header lines, and lo
			t.Errorf("the sandbox has devices: %s, %v", devices, err)
		}
		return string(b)
	}
	field := func(status, name string) string {
		_, rest, _ := strings.Cut(status, name+":\t")
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
	eachUser(t, func(t *testing.T, u user) {
		p := startProcess(t, u, testConfig())
		var flags []string
		if u == 0 {
			flags = append(flags, "--directfs=false")
		}
		status := own(t, p.sandbox("a", "10.88.0.5", flags...))
		var caps uint64
		if _, err := fmt.Sscanf(field(status, "CapEff"), "%x", &caps); err != nil || caps&(1<<unix.CAP_NET_ADMIN) != 0 {
			t.Errorf("the sandbox has capabilities %x, %v", caps, err)
		}
		if u == 0 && !strings.HasPrefix(field(status, "Uid"), "65534\t") {
			t.Errorf("the sandbox that root started has uid %q", field(status, "Uid"))
		}
	})
}
