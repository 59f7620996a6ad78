// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestPodsOutliveTheProcess checks that the next process gets the same descriptors, and that pods keep running.
func TestPodsOutliveTheProcess(t *testing.T) {
	needInternet(t)
	eachUser(t, func(t *testing.T, u user) {
		p := startProcess(t, u, testConfig())
		s, g := p.sandbox("a", "10.88.0.5"), p.guest("ns/b", "10.88.0.6")
		kept := g.mustDial("10.88.0.5", echoPort)
		if got, err := s.exec("dial", "tcp", internetAddress+":13"); err != nil || got != hello {
			t.Fatalf("%q, %v", got, err)
		}
		p.end(syscall.SIGKILL)
		if _, err := g.control.Read(make([]byte, 1)); err == nil {
			t.Error("the connection of a pod outlived the process")
		}
		p.start()
		p.configure(testConfig())
		p.attach(s.pod, s.card)
		p.attach(Pod{Name: "ns/b", Address: g.address}, g.card)
		if got, err := s.exec("dial", "tcp", internetAddress+":13"); err != nil || got != hello {
			t.Errorf("afterwards: %q, %v", got, err)
		}
		checkEcho(t, kept, 100000) // pods keep connections with each other
	})
}

func TestNothingGoesOutBeforeTheConfiguration(t *testing.T) {
	needInternet(t)
	d := startDaemon(t, nil)
	a, b := d.guest("ns/a", "10.88.0.5"), d.guest("ns/b", "10.88.0.6")
	b.listen(80, echo)
	for _, address := range []string{internetAddress, testGateway.String()} {
		if _, err := a.dial(address, helloPort); err == nil {
			t.Errorf("%s answered", address)
		}
	}
	if err := a.ping(testGateway.String(), 100e6); err == nil {
		t.Error("the gateway answered")
	}
	checkEcho(t, a.mustDial("10.88.0.6", 80), 1000)
	c := testConfig()
	if _, answer := ask(t, d.socket, Request{Op: OpConfigure, Config: &c}); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if err := a.ping(testGateway.String(), patience); err != nil {
		t.Error(err)
	}
	checkEcho(t, a.mustDial(internetAddress, echoPort), 1000)
}

// TestConfigurationsReplaceEachOther sends several configurations, some of them over one connection, as the
// daemon does.
func TestConfigurationsReplaceEachOther(t *testing.T) {
	needInternet(t)
	c := testConfig()
	d := startDaemon(t, &c)
	g := d.guest("ns/a", "10.88.0.5")
	kept := g.mustDial("10.98.7.7", 443)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: d.socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, packet := range []string{
		`{"op":"configure","config":{"range":"10.88.0.0/22","gateway":"10.88.0.2","mtu":1500,"nameservers":[],"denied":["` + internetAddress + `/32"],"services":[]}}`,
		`{"op":"version"}`,
	} {
		if _, err := conn.Write([]byte(packet)); err != nil {
			t.Fatal(err)
		}
		if answer, _, err := readPacket(conn); err != nil || len(answer) > 20 {
			t.Fatalf("%s, %v", answer, err)
		}
	}
	if _, err := g.dial(internetAddress, helloPort); err == nil {
		t.Error("an address that is denied now answered")
	}
	if _, err := g.dial("10.98.7.7", 443); err == nil {
		t.Error("a service that is no more answered")
	}
	if err := g.ping("10.88.0.2", patience); err != nil {
		t.Error(err)
	}
	if err := g.ping(testGateway.String(), 100e6); err == nil {
		t.Error("the old gateway answered")
	}
	checkEcho(t, kept, 1000)
	if _, a := ask(t, d.socket, Request{Op: OpConfigure, Config: &Config{}}); a.Error == "" {
		t.Error("an empty configuration was taken")
	}
	if err := g.ping("10.88.0.2", patience); err != nil {
		t.Error(err)
	}
}

func TestAttachIsRefused(t *testing.T) {
	c := testConfig()
	d := startDaemon(t, &c)
	d.guest("ns/a", "10.88.0.5")
	stream, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	network, sandbox := pair(t)
	for _, fd := range []int{network, sandbox, stream[0], stream[1]} {
		defer unix.Close(fd)
	}
	for _, test := range []struct {
		address string
		fds     []int
	}{
		{"10.88.0.5", []int{network}}, {"10.88.0.1", []int{network}}, {"10.89.0.5", []int{network}},
		{"10.88.0.6", nil}, {"10.88.0.6", []int{network, network}}, {"10.88.0.6", []int{stream[0]}}, {"10.88.0.6", []int{int(os.Stdin.Fd())}},
	} {
		r := Request{Op: OpAttach, Pod: &Pod{Name: "ns/b", Address: netip.MustParseAddr(test.address)}}
		if _, a := ask(t, d.socket, r, test.fds...); a.Error == "" {
			t.Errorf("%s with descriptors %v was attached", test.address, test.fds)
		}
	}
	d.network.files.free = 1
	if _, a := ask(t, d.socket, Request{Op: OpAttach, Pod: &Pod{Name: "ns/b", Address: netip.MustParseAddr("10.88.0.6")}}, network); a.Error == "" {
		t.Error("a pod was attached without descriptors for it")
	}
	d.network.files.free = 1000
	stranger := &server{network: d.network, users: []uint32{4242}, idle: idleTime}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := [2]*net.UnixConn{}
	for i, fd := range pair {
		file := os.NewFile(uintptr(fd), "")
		conn, err := net.FileConn(file)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ends[i] = conn.(*net.UnixConn)
	}
	go stranger.answerClient(t.Context(), ends[0])
	_ = ends[1].SetReadDeadline(time.Now().Add(patience))
	if answer, _, err := readPacket(ends[1]); err != nil || len(answer) < 10 {
		t.Errorf("another user got %q, %v", answer, err)
	}
}

// TestTUN checks that a container with its own kernel can use a TUN device as its card.
func TestTUN(t *testing.T) {
	needInternet(t)
	tun, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("there is no TUN device: %v", err)
	}
	defer unix.Close(tun)
	var request struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "vktun0")
	request.flags = unix.IFF_TUN | unix.IFF_NO_PI
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(tun), unix.TUNSETIFF, uintptr(unsafe.Pointer(&request))); errno != 0 {
		t.Skipf("a TUN device cannot be made: %v", errno)
	}
	ip(t, "link set vktun0 mtu 65520 up")
	ip(t, "address add 10.88.0.9/32 dev vktun0")
	ip(t, "route add 10.88.0.6/32 dev vktun0 src 10.88.0.9")
	p := startProcess(t, user(os.Geteuid()), testConfig())
	p.attach(Pod{Name: "ns/tun", Address: netip.MustParseAddr("10.88.0.9")}, tun)
	p.guest("ns/b", "10.88.0.6").listen(80, echo)
	conn, err := net.Dial("tcp4", "10.88.0.6:80")
	if err != nil {
		t.Fatal(err)
	}
	checkEcho(t, conn.(*net.TCPConn), 5<<20)
}

// TestKeptPodStaysWithoutItsConnection checks that a kept pod stays until it is detached, so that daemons can be
// replaced.
func TestKeptPodStaysWithoutItsConnection(t *testing.T) {
	c := testConfig()
	d := startDaemon(t, &c)
	network, sandbox := pair(t)
	defer unix.Close(network)
	address := netip.MustParseAddr("10.88.0.5")
	control, a := ask(t, d.socket, Request{Op: OpAttach, Keep: true, Pod: &Pod{Name: "ns/a", Address: address}}, network)
	if a.Error != "" {
		t.Fatal(a.Error)
	}
	control.Close()
	kept, b := newGuest(t, "10.88.0.5", sandbox, network, nil), d.guest("ns/b", "10.88.0.6")
	kept.listen(80, echo)
	checkEcho(t, b.mustDial("10.88.0.5", 80), 1000)
	for range 2 { // detaching a pod that is gone is no error
		if _, a := ask(t, d.socket, Request{Op: OpDetach, Address: address}); a.Error != "" {
			t.Fatal(a.Error)
		}
		if d.network.findPod(address.As4()) != nil {
			t.Error("the pod is attached")
		}
	}
}

// TestProcessEndsWhenNobodyNeedsIt checks that the process ends once there is neither a pod nor a daemon.
func TestProcessEndsWhenNobodyNeedsIt(t *testing.T) {
	n, err := newNetwork(1000, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	synctest.Test(t, func(t *testing.T) {
		s := &server{network: n, idle: idleTime}
		ended := make(chan struct{})
		go func() { defer close(ended); s.awaitIdle(t.Context()) }()
		still := func(what string) {
			t.Helper()
			time.Sleep(10 * idleTime) // of a bubble
			select {
			case <-ended:
				t.Fatalf("it ended with %s", what)
			default:
			}
		}
		s.connections.Add(1)
		still("a connection")
		n.pods.Store(&map[address]*pod{{10, 88, 0, 5}: nil})
		s.connections.Add(-1)
		still("a pod")
		n.pods.Store(&map[address]*pod{})
		begin := time.Now()
		<-ended
		if took := time.Since(begin); took < idleTime/2 || took > 2*idleTime {
			t.Errorf("it ended after %v", took)
		}
	})
}
