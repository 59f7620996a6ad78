// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oomscore"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// oomEnv makes TestDaemonIsEndedLast run as the daemon in a separate process, so that the score of other tests
// does not change.
const oomEnv = "PROCESS_OOM"

// TestDaemonIsEndedLast checks that, when memory runs out, the kernel ends containers and their supervisors
// before the daemon, as with a kubelet.
func TestDaemonIsEndedLast(t *testing.T) {
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	if os.Getenv(oomEnv) == "" {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^TestDaemonIsEndedLast$", "-test.v")
		cmd.Env = append(os.Environ(), oomEnv+"=1", "PROCESS_IMAGES="+images)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	const before = 100 // a score to which a daemon without the right to lower scores can return, too
	may := os.WriteFile("/proc/self/oom_score_adj", fmt.Append(nil, -999), 0) == nil
	if err := os.WriteFile("/proc/self/oom_score_adj", fmt.Append(nil, before), 0); err != nil {
		t.Fatal(err)
	}
	want := map[bool]int{true: -999, false: before}[may]
	startProvider(t, images)
	self := strconv.Itoa(os.Getpid())
	if got := scoreOf(t, self); got != want {
		t.Fatalf("the daemon has the score %d, want %d", got, want)
	}
	if !may {
		oomscore.LowerTo(0)
		if got := scoreOf(t, self); got != 0 {
			t.Skipf("this machine starts processes with a score above 0, and they may not lower it: %d", got)
		}
	}
	w := open(t, nil)
	w.run("main", func(c *runtimeapi.ContainerConfig) {
		c.Linux.Resources = &runtimeapi.LinuxContainerResources{OomScoreAdj: 500}
	}, "sleep", "600")
	container := false
	for _, pid := range shim.Descendants(os.Getpid()) {
		got := scoreOf(t, strconv.Itoa(pid))
		container = container || got == 500
		if got < before {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			t.Errorf("%q has the score %d, want at least the %d of before", name, got, before)
		}
	}
	if !container {
		t.Error("no process has the score of the container")
	}
}

// startProvider makes the provider from a configuration file, as the program does.
func startProvider(t *testing.T, images string) {
	t.Helper()
	c := testConfig(filepath.Join(t.TempDir(), "state"), images)
	if c.Isolation == process.IsolationGVisor {
		c.RuntimePath = needGVisor(t)
	}
	path := filepath.Join(t.TempDir(), "process.yaml")
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nstateDir: %q\nimages: [%q]\nisolation: %s\nruntimePath: %q\n",
		process.APIVersion, process.Kind, c.StateDir, images, c.Isolation, c.RuntimePath)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := process.Provider().New(t.Context(), cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, Recorder: record.NewFakeRecorder(100)},
		InternalIP:     "127.0.0.1", KubeClusterDomain: "cluster.local", ConfigPath: path,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end()
		if err := p.(node.BackgroundRunner).RunInBackground(ended); err != nil { // frees its resources, and ends its processes
			t.Error(err)
		}
	})
}

func scoreOf(t *testing.T, pid string) int {
	t.Helper()
	data, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
	if err != nil {
		return 0 // it has ended
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return score
}
