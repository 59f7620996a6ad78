// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkSandbox measures streams of iperf in real sandboxes: with the machine's network, and with this one:
// out to another network namespace, in from there, and from pod to pod. Rounds are interleaved, and a ratio
// compares medians.
//
//	go test ./podnet -run '^$' -bench Sandbox -benchtime 5x
func BenchmarkSandbox(b *testing.B) {
	needInternet(b)
	if _, err := exec.LookPath("iperf"); err != nil {
		b.Skip("there is no iperf: install the package iperf")
	}
	server := exec.Command("nsenter", "-n", "-t", strconv.Itoa(theInternet.cmd.Process.Pid), "iperf", "-s", "-B", internetAddress)
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	p := startProcess(b, user(os.Geteuid()), testConfig())
	host, other := p.sandboxOf("h", "", "--network=host"), p.sandboxOf("i", "", "--network=host")
	one, two := p.sandbox("a", "10.88.0.5"), p.sandbox("b", "10.88.0.6")
	for s, port := range map[*sandbox]string{other: "5002", two: "5001"} {
		s.addIperf()
		s.mustRun("exec", "--detach", s.id, "/iperf", "-s", "-p", port)
	}
	host.addIperf()
	one.addIperf()
	tests := []struct {
		name string
		s    *sandbox
		args []string
	}{
		{"machine-out", host, []string{internetAddress}}, {"pod-out", one, []string{internetAddress}},
		{"machine-in", host, []string{internetAddress, "-R"}}, {"pod-in", one, []string{internetAddress, "-R"}},
		{"machine-to-machine", host, []string{"127.0.0.1", "-p", "5002"}}, {"pod-to-pod", one, []string{"10.88.0.6"}},
	}
	rates := map[string][]float64{}
	for b.Loop() {
		for _, test := range tests {
			rates[test.name] = append(rates[test.name], test.s.iperf(test.args...))
		}
	}
	median := func(name string) float64 {
		slices.Sort(rates[name])
		return rates[name][len(rates[name])/2]
	}
	for _, test := range tests {
		b.ReportMetric(median(test.name), test.name+"-Mbit/s")
	}
	b.ReportMetric(median("pod-out")/median("machine-out"), "out-ratio")
	b.ReportMetric(median("pod-in")/median("machine-in"), "in-ratio")
	b.ReportMetric(median("pod-to-pod")/median("machine-to-machine"), "pod-to-pod-ratio")
	b.ReportMetric(float64(p.status(b, "VmHWM"))/1024, "MiB-at-most")
}

// addIperf copies iperf and its libraries into the root of the sandbox.
func (s *sandbox) addIperf() {
	s.t.Helper()
	path, err := exec.LookPath("iperf")
	if err != nil {
		s.t.Fatal(err)
	}
	libraries, err := exec.Command("ldd", path).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	root := filepath.Join(s.process.dir, s.id, "rootfs")
	files := map[string]string{path: "/iperf"}
	for word := range strings.FieldsSeq(string(libraries)) {
		if filepath.IsAbs(word) {
			files[word] = word
		}
	}
	for from, to := range files {
		target := filepath.Join(root, to)
		err := os.MkdirAll(filepath.Dir(target), 0o755)
		if err == nil {
			err = copyFile(from, target)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// iperf returns the Mbit/s of a stream of two seconds.
func (s *sandbox) iperf(args ...string) float64 {
	s.t.Helper()
	out, err := s.run(append([]string{"exec", s.id, "/iperf", "-t", "2", "-f", "m", "-c"}, args...)...)
	var rate float64
	if err == nil {
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); len(words) > 1 && words[len(words)-1] == "Mbits/sec" {
				_, err = fmt.Sscan(words[len(words)-2], &rate)
			}
		}
	}
	if err != nil || rate == 0 {
		s.t.Fatalf("iperf %q: %v: %s", args, err, out)
	}
	return rate
}

// TestMemoryOfTheProcess checks that 100 idle pods fit into 64 MiB.
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

// status returns a figure of /proc/PID/status.
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
