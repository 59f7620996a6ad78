// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// BenchmarkSandbox measures streams of real sandboxes: with the machine's network, and with this one, out, in, and from pod to pod.
//
//	go test ./podnet -run '^$' -bench Sandbox -benchtime 5x
func BenchmarkSandbox(b *testing.B) {
	needInternet(b)
	p := startProcess(b, user(os.Geteuid()), testConfig())
	host := p.sandboxOf("h", "", "--network=host")
	one := p.sandbox("a", "10.88.0.5")
	p.sandbox("b", "10.88.0.6")
	tests := []struct {
		name, what, address string
		s                   *sandbox
	}{
		{"machine-out", "send", internetAddress + ":9", host}, {"pod-out", "send", internetAddress + ":9", one},
		{"machine-in", "get", internetAddress + ":19", host}, {"pod-in", "get", internetAddress + ":19", one},
		{"pod-to-pod", "send", "10.88.0.6:9", one},
	}
	rates := map[string][]float64{}
	for b.Loop() {
		for _, test := range tests {
			out, err := test.s.exec(test.what, test.address)
			var rate float64
			if err == nil {
				_, err = fmt.Sscan(out, &rate)
			}
			if err != nil {
				b.Fatalf("%s: %q, %v", test.name, out, err)
			}
			rates[test.name] = append(rates[test.name], rate)
		}
	}
	for name, r := range rates {
		slices.Sort(r)
		b.ReportMetric(r[len(r)/2], name+"-Mbit/s")
	}
	b.ReportMetric(float64(p.status(b, "VmHWM"))/1024, "MiB-at-most")
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
	const most = 64 << 10
	if rss := p.status(t, "VmRSS"); rss > most {
		t.Errorf("the process has %d KiB with 100 pods, want %d at most", rss, most)
	}
}

// status is a figure of /proc/PID/status.
func (p *process) status(t testing.TB, name string) (n int) {
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
