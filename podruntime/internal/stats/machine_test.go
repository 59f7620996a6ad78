// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"
)

var noon = metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))

// write puts files below a new directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const netDev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    7777       8    0    0    0     0          0         0     7777       8    0    0    0     0       0          0
 veth1:    5555       8    0    0    0     0          0         0     5555       8    0    0    0     0       0          0
  ens3:100       2    3    4    0     0          0         0     200       6    5    0    0     0       0          0
  eth0:     300       2    0    4    0     0          0         0     400       6    0    0    0     0       0          0
`

func linux(t *testing.T) machine {
	return machine{
		proc: write(t, map[string]string{
			"stat":                         "cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 50 10 15 2000 250 3 3 4 0 0\ncpu1 50 10 15 2000 250 3 4 4 0 0\nintr 5\nbtime 1700000000\n",
			"meminfo":                      "MemTotal: 1000 kB\nMemFree: 300 kB\nInactive(file): 200 kB\nAnonPages: 50 kB\nSwapTotal: 80 kB\nSwapFree: 60 kB\nHugePages_Total: 3\n",
			"vmstat":                       "pgfault 11\npgmajfault 12\n",
			"loadavg":                      "1.0 1.0 1.0 3/475 6549\n",
			"sys/kernel/pid_max":           "32768\n",
			"sys/kernel/osrelease":         "6.1.0-test\n",
			"sys/kernel/random/boot_id":    "boot\n",
			"self/net/dev":                 netDev,
			"self/net/route":               "Iface Destination Gateway\nens3 0000FEA9 0\nens3 00000000 0102030A\n",
			"4711/net/dev":                 netDev,
			"4712/net/dev":                 "nothing\n",
			"sys/kernel/random/other/file": "",
		}),
		root: write(t, map[string]string{
			"etc/machine-id": "machine\n",
			"etc/os-release": "NAME=x\nPRETTY_NAME=\"Test Linux 1\"\n",
			"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":    "3\n",
			"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
		}),
	}
}

func TestMachineFromProc(t *testing.T) {
	m := linux(t)
	got := statsv1alpha1.NodeStats{
		StartTime: m.bootTime(noon), CPU: m.cpuTime(noon), Memory: m.memoryUse(noon), Swap: m.swapUse(noon), Network: m.networkTraffic(noon, "self"), Rlimit: m.threadCount(noon),
	}
	ens3 := statsv1alpha1.InterfaceStats{Name: "ens3", RxBytes: ptr.To[uint64](100), RxErrors: ptr.To[uint64](3), TxBytes: ptr.To[uint64](200), TxErrors: ptr.To[uint64](5)}
	eth0 := statsv1alpha1.InterfaceStats{Name: "eth0", RxBytes: ptr.To[uint64](300), RxErrors: ptr.To[uint64](0), TxBytes: ptr.To[uint64](400), TxErrors: ptr.To[uint64](0)}
	want := statsv1alpha1.NodeStats{
		StartTime: metav1.NewTime(time.Unix(1700000000, 0)),
		CPU:       &statsv1alpha1.CPUStats{Time: noon, UsageCoreNanoSeconds: ptr.To[uint64](1_630_000_000)},
		Memory: &statsv1alpha1.MemoryStats{
			Time: noon, UsageBytes: ptr.To[uint64](700 << 10), WorkingSetBytes: ptr.To[uint64](500 << 10), AvailableBytes: ptr.To[uint64](500 << 10),
			RSSBytes: ptr.To[uint64](50 << 10), PageFaults: ptr.To[uint64](11), MajorPageFaults: ptr.To[uint64](12),
		},
		Swap:    &statsv1alpha1.SwapStats{Time: noon, SwapAvailableBytes: ptr.To[uint64](60 << 10), SwapUsageBytes: ptr.To[uint64](20 << 10)},
		Network: &statsv1alpha1.NetworkStats{Time: noon, InterfaceStats: ens3, Interfaces: []statsv1alpha1.InterfaceStats{ens3, eth0}},
		Rlimit:  &statsv1alpha1.RlimitStats{Time: noon, MaxPID: ptr.To[int64](32768), NumOfRunningProcesses: ptr.To[int64](475)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the machine (-want +got):\n%s", diff)
	}
	if n := m.networkTraffic(noon, "4711"); n == nil || n.Name != "eth0" {
		t.Errorf("without a default route: %v, want eth0", n)
	}
	if n := m.networkTraffic(noon, "4712"); n != nil {
		t.Errorf("a process without interfaces: %v", n)
	}
}

func TestMachineWithoutProc(t *testing.T) {
	m := machine{proc: t.TempDir(), root: t.TempDir()}
	if m.cpuTime(noon) != nil || m.memoryUse(noon) != nil || m.swapUse(noon) != nil || m.networkTraffic(noon, "self") != nil || m.threadCount(noon) != nil || m.fileSystem(noon, "") != nil {
		t.Error("what is not known has a value")
	}
	if m.bootTime(noon) != noon {
		t.Error("the start is not the one that is known")
	}
	list := m.nodeCapacity(filepath.Join(t.TempDir(), "none"), 0)
	if len(list) != 2 || list.Cpu().Value() != int64(runtime.NumCPU()) || list.Pods().Value() != 110 {
		t.Errorf("capacity %v", list)
	}
	if info := m.systemInfo(); info.Architecture != runtime.GOARCH || info.OperatingSystem != runtime.GOOS || info.OSImage != runtime.GOOS {
		t.Errorf("info %v", info)
	}
}

func TestCapacityAndInfo(t *testing.T) {
	m := linux(t)
	list := m.nodeCapacity(t.TempDir(), 7)
	storage := list[corev1.ResourceEphemeralStorage]
	if fs := m.fileSystem(noon, t.TempDir()); fs == nil || storage.Value() != int64(*fs.CapacityBytes) || storage.IsZero() {
		t.Errorf("ephemeral storage %s, the file system has %v", storage.String(), fs)
	}
	got := map[corev1.ResourceName]string{}
	for name, q := range list {
		if name != corev1.ResourceEphemeralStorage {
			got[name] = q.String()
		}
	}
	want := map[corev1.ResourceName]string{"cpu": "2", "memory": "1000Ki", "pods": "7", "hugepages-2Mi": "6Mi", "hugepages-1Gi": "0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(corev1.NodeSystemInfo{
		MachineID: "machine", SystemUUID: "machine", BootID: "boot", KernelVersion: "6.1.0-test", OSImage: "Test Linux 1",
		OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
	}, m.systemInfo()); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

func TestRates(t *testing.T) {
	r := rates{}
	read := func(total uint64, at time.Duration) *uint64 {
		c := &statsv1alpha1.CPUStats{Time: metav1.NewTime(noon.Add(at)), UsageCoreNanoSeconds: &total}
		r.addRate("x", c)
		return c.UsageNanoCores
	}
	for i, step := range []struct {
		total uint64
		at    time.Duration
		want  *uint64
	}{
		{100, 0, nil},
		{2_000_000_100, 4 * time.Second, ptr.To[uint64](500_000_000)},
		{2_000_000_100, 4 * time.Second, ptr.To[uint64](500_000_000)}, // the same reading again
		{2_000_000_100, 5 * time.Second, ptr.To[uint64](0)},
		{50, 6 * time.Second, nil}, // begun anew
		{1_000_000_050, 7 * time.Second, ptr.To[uint64](1_000_000_000)},
	} {
		if diff := cmp.Diff(step.want, read(step.total, step.at)); diff != "" {
			t.Errorf("reading %d (-want +got):\n%s", i, diff)
		}
	}
	known := &statsv1alpha1.CPUStats{Time: noon, UsageCoreNanoSeconds: ptr.To[uint64](1), UsageNanoCores: ptr.To[uint64](42)}
	r.addRate("y", known)
	if *known.UsageNanoCores != 42 {
		t.Errorf("what the runtime knew is replaced by %d", *known.UsageNanoCores)
	}
	r.beginRound()
	r.addRate("y", known)
	r.forgetUnseen()
	if r["x"] != nil || r["y"] == nil {
		t.Errorf("remembered are %v, want y alone", r)
	}
}
