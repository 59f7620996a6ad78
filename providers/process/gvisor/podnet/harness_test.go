// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests run in a network namespace of their own, called the machine. It reaches a second namespace, called
// the internet, whose process also serves the addresses that no pod may reach. A refusal therefore comes from
// the rules, and not from a missing listener.
const (
	inMachine  = "PODNET_TEST_MACHINE"  // "yes" in the namespace of the machine, or the reason why it could not be made
	inInternet = "PODNET_TEST_INTERNET" // set in the process of the internet

	machineAddress  = "10.99.0.1"
	internetAddress = "10.99.0.2"
	deniedByConfig  = "10.98.0.2" // on the internet, and denied by the configuration of the tests

	echoPort    = 7
	discardPort = 9
	helloPort   = 13
	endlessPort = 19
	dnsTest     = 53
	hello       = "from the internet\n"
)

// metadata are addresses of the internet that no pod may reach.
var metadata = []string{"169.254.169.254", "100.100.100.200", "168.63.129.16"}

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == guestCommand:
		if err := beGuest(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case os.Getenv(inInternet) != "":
		if err := beInternet(); err != nil {
			fmt.Fprintln(os.Stderr, "internet:", err)
			os.Exit(1)
		}
		return
	case slices.Contains(os.Args, "-test.fuzzworker"): // a fuzz worker has descriptors that another process would not inherit, and needs no network
		os.Exit(m.Run())
	case os.Getenv(inMachine) != "":
		code := m.Run()
		theInternet.end()
		os.Exit(code)
	}
	os.Exit(runInNamespace())
}

// runInNamespace runs the tests again in a new network namespace, or in the namespace of this process if none
// can be made.
func runInNamespace() int {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.SysProcAttr, cmd.Stdin, cmd.Stdout, cmd.Stderr = attr, os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inMachine+"=yes")
	err := cmd.Start()
	if err != nil {
		cmd = exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), inMachine+"="+err.Error())
		err = cmd.Start()
	}
	if err == nil {
		err = cmd.Wait()
	}
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return max(ended.ExitCode(), 1)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// internet is the process in the second namespace.
type internet struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

var theInternet internet

func (i *internet) end() {
	if i.cmd != nil {
		_ = i.stdin.Close()
		_ = i.cmd.Wait()
	}
}

// needInternet makes the machine and the internet once. It skips the test if that is impossible.
func needInternet(t testing.TB) {
	t.Helper()
	if why := os.Getenv(inMachine); why != "yes" {
		t.Skip("the tests have no network namespace of their own: " + why)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("there is no program ip, which makes the networks of this test")
	}
	if theInternet.cmd != nil {
		return
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), inInternet+"=yes")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("a second network namespace cannot be made: %v", err)
	}
	theInternet = internet{cmd, in}
	ip(t, "link set lo up")
	if err := serveAll(context.Background(), "0.0.0.0"); err != nil { // servers that a pod must not reach
		t.Fatal(err)
	}
	ip(t, "link add vk0 type veth peer name vk1 netns "+strconv.Itoa(cmd.Process.Pid))
	ip(t, "link set vk0 up")
	ip(t, "address add "+machineAddress+"/24 dev vk0")
	ip(t, "address add 169.254.77.1/32 dev vk0")
	ip(t, "address add 192.0.2.77/32 dev lo")
	ip(t, "route add local 192.0.2.128/25 dev lo") // a range that is routed to the machine without being its addresses
	for _, a := range append([]string{deniedByConfig}, metadata...) {
		ip(t, "route add "+a+"/32 dev vk0")
	}
	if _, err := io.WriteString(in, "start\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the internet said %q, %v", line, err)
	}
}

func ip(t testing.TB, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

// beInternet serves as the internet until its input ends.
func beInternet() error {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	commands := []string{"link set lo up", "link set vk1 up", "address add " + internetAddress + "/24 dev vk1"}
	for _, a := range append([]string{deniedByConfig}, metadata...) {
		commands = append(commands, "address add "+a+"/32 dev vk1")
	}
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", c, err, out)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	if err := serveAll(ctx, "0.0.0.0"); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err := in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// serveAll serves echo, DNS and more at an address until the process ends. The hello server comes last: once it
// answers, all servers answer.
func serveAll(ctx context.Context, address string) error {
	for port, answer := range map[int]func([]byte) []byte{
		echoPort: func(b []byte) []byte { return b },
		dnsTest:  nameAnswer,
	} {
		l, err := net.ListenPacket("udp4", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = l.Close() })
		go reflectAll(l, answer)
	}
	sayHello := func(c *net.TCPConn) { _, _ = io.WriteString(c, hello) }
	for _, service := range []struct {
		port   int
		handle func(*net.TCPConn)
	}{
		{echoPort, func(c *net.TCPConn) { _, _ = io.Copy(c, c); _ = c.CloseWrite() }},
		{discardPort, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }},
		{endlessPort, func(c *net.TCPConn) {
			for b := make([]byte, 1<<17); ; {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		}},
		{dnsTest, sayHello}, {helloPort, sayHello},
	} {
		l, err := net.Listen("tcp4", net.JoinHostPort(address, strconv.Itoa(service.port)))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = l.Close() })
		go accept(l, service.handle)
	}
	return nil
}

func accept(l net.Listener, handle func(*net.TCPConn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			handle(c.(*net.TCPConn))
		}()
	}
}

func reflectAll(l net.PacketConn, answer func([]byte) []byte) {
	b := make([]byte, 1<<16)
	for {
		n, from, err := l.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = l.WriteTo(answer(b[:n]), from)
	}
}

// nameAnswer returns the answer to a DNS question: the question with the answer bit set, and 192.0.2.1 for its
// name.
func nameAnswer(question []byte) []byte {
	if len(question) < dnsHeader {
		return nil
	}
	answer := append([]byte{}, question...)
	answer[2] |= 0x80
	answer[3] = 0x80
	answer[7] = 1 // one answer, before any further records of the question
	answer[9], answer[11] = 0, 0
	end := dnsHeader
	for end < len(answer) && answer[end] != 0 {
		end += int(answer[end]) + 1
	}
	answer = answer[:min(end+5, len(answer))]
	return append(answer, 0xc0, dnsHeader, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
}
