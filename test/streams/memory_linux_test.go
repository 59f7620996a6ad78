// SPDX-License-Identifier: Apache-2.0

//go:build !race

package streams

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/spdystream/spdy"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// streamServer turns the test program into a node's server, to measure the memory of streams.
const streamServer = "VK_TEST_STREAM_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(streamServer) != "" {
		serveStreams()
		return
	}
	os.Exit(m.Run())
}

// zeroes is an endless output.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// serveStreams serves over TLS until its standard input ends. Its providers make the node hold the most data:
// one does not read the client's input, and one writes without end.
func serveStreams() {
	debug.SetGCPercent(60) // as in a daemon with much memory in use
	s := httptest.NewUnstartedServer(api.PodHandler(api.PodHandlerConfig{
		RunInContainer: func(ctx context.Context, _, _, container string, _ []string, attach api.AttachIO) error {
			if container == "talks" {
				_, err := io.Copy(attach.Stdout(), zeroes{})
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		},
		PortForward: func(ctx context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", os.Getenv(streamServer))
			if err != nil {
				return err
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			go func() { _, _ = io.Copy(conn, stream) }()
			_, err = io.Copy(stream, conn)
			return err
		},
		StreamLimits: api.NewStreamLimits(2000, 1500),
	}, true))
	s.StartTLS()
	defer s.Close()
	fmt.Println(s.Listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func toSPDY(protocol string) []string {
	return []string{"Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: " + protocol}
}

func toWebSocket(protocol string) []string {
	return []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: " + protocol}
}

// node is a server in a process of its own.
type node struct {
	address string
	pid     int
}

func startNode(t *testing.T) node {
	t.Helper()
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // the target of a port-forward: it accepts by its backlog, and reads nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deaf.Close() })
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), streamServer+"="+deaf.Addr().String())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return node{strings.TrimSpace(address), cmd.Process.Pid}
}

// resident returns a memory figure of the node's process, in KiB.
func (n node) resident(t *testing.T, field string) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(data)
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

func (n node) dial(path string, header []string) (net.Conn, error) {
	conn, err := tls.Dial("tcp", n.address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", path, strings.Join(header, "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	if err != nil {
		return conn, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return conn, fmt.Errorf("answered %s", resp.Status)
	}
	return conn, nil
}

// attack is the data that a client sends until the node accepts no more.
type attack struct {
	name, path string
	header     []string
	opening    []byte
	again      []byte
}

func attacks(t *testing.T) []attack {
	message := func(opcode byte, size, sent int) []byte {
		m := append([]byte{0x80 | opcode, 0x80 | 127}, binary.BigEndian.AppendUint64(nil, uint64(size))...)
		return append(m, make([]byte, 4+sent)...) // the mask is zero, the channel is stdin
	}
	streams := func(headers ...http.Header) []byte {
		var b strings.Builder
		framer, err := spdy.NewFramer(&b, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range headers {
			if err := framer.WriteFrame(&spdy.SynStreamFrame{StreamId: spdy.StreamId(2*i + 1), Headers: h}); err != nil {
				t.Fatal(err)
			}
		}
		return []byte(b.String())
	}
	const (
		reads, talks = "/exec/default/web/app?command=x&output=1&input=1", "/exec/default/web/talks?command=x&output=1&error=1"
		forward      = "/portForward/default/web"
		most         = 1 << 20
	)
	header := func(streams ...string) (all []http.Header) {
		for _, s := range streams {
			all = append(all, http.Header{"Streamtype": {s}})
		}
		return all
	}
	data := func(stream uint32, size int) []byte {
		return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, stream), uint32(size)), make([]byte, size)...)
	}
	ports := []http.Header{}
	for i := range 20 {
		for _, s := range []string{"error", "data"} {
			ports = append(ports, http.Header{"Streamtype": {s}, "Port": {"80"}, "Requestid": {strconv.Itoa(i)}})
		}
	}
	v4, v5 := toWebSocket("v4.channel.k8s.io"), toWebSocket("v5.channel.k8s.io")
	spdyExec := streams(header("error", "stdout", "stdin")...)
	return []attack{
		{"a frame of 32 MiB", reads, v4, nil, message(2, 32<<20, 1<<20)},
		{"frames of 1 MiB", reads, v5, nil, message(2, most, most)},
		{"output that nobody reads", talks, v4, nil, nil},
		{"frames of 1 MiB over SPDY", reads, toSPDY("v4.channel.k8s.io"), spdyExec, data(5, most)},
		{"forwarded connections", forward, toSPDY("portforward.k8s.io"), streams(ports...), bytes.Join([][]byte{data(3, most), data(7, most), data(11, most), data(15, most), data(19, most)}, nil)},
	}
}

// fill sends until the node accepts no more for a while, or ends the connection.
func (a attack) fill(conn net.Conn) {
	const most, patience = 3 << 20, 300 * time.Millisecond
	if _, err := conn.Write(a.opening); err != nil || len(a.again) == 0 {
		return
	}
	for sent := 0; sent < most; sent += len(a.again) {
		for rest := a.again; len(rest) > 0; {
			_ = conn.SetWriteDeadline(time.Now().Add(patience))
			n, err := conn.Write(rest[:min(len(rest), 64<<10)])
			if rest = rest[n:]; err != nil {
				return
			}
		}
	}
}

// TestSecurityE11MemoryOfAllStreamsIsBounded: a user opens as many sessions as are allowed, and each session
// does its worst. The memory of the node's process grows by 256 MiB at most.
func TestSecurityE11MemoryOfAllStreamsIsBounded(t *testing.T) {
	const sessions, most = 1500, 256 << 10 // in KiB
	for _, a := range attacks(t) {
		t.Run(a.name, func(t *testing.T) {
			n := startNode(t)
			before, begun := n.resident(t, "VmRSS"), time.Now()
			var (
				attackers sync.WaitGroup
				mu        sync.Mutex
				refused   = map[string]int{}
				slots     = make(chan struct{}, 150)
			)
			for range sessions {
				slots <- struct{}{}
				attackers.Go(func() {
					defer func() { <-slots }()
					conn, err := n.dial(a.path, a.header)
					if conn != nil {
						t.Cleanup(func() { conn.Close() })
					}
					if err != nil {
						mu.Lock()
						defer mu.Unlock()
						refused[err.Error()]++
						return
					}
					a.fill(conn)
				})
			}
			attackers.Wait()
			grown := n.resident(t, "VmHWM") - before // the peak
			t.Logf("%d sessions in %v: %d MiB before, %d MiB more at the most; refused: %v", sessions, time.Since(begun), before>>10, grown>>10, refused)
			if grown > most {
				t.Errorf("the node holds %d MiB more, want at most %d", grown>>10, most>>10)
			}
		})
	}
}
