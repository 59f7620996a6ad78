// SPDX-License-Identifier: Apache-2.0

//go:build linux

package examples

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestUpAndDown follows the README's instructions for a first try. The node is killed before the end, so its pods outlive it. make down still removes
// them.
func TestUpAndDown(t *testing.T) {
	cache, cluster, script := demo(t, "process")
	out, err := script("up.sh")
	if err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	for _, want := range []string{"✓ pods are isolated by gVisor", "✓ pod first is running", " from first\n\nGo on", "make down CLUSTER=" + cluster} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "devcluster down") {
		t.Errorf("it tells of two ways to stop:\n%s", out)
	}
	kubectl := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "../bin/devcluster", append([]string{"kubectl", "--name", cluster}, args...)...)
		cmd.Env = append(os.Environ(), "DEVCLUSTER_HOME="+filepath.Join(cache, "clusters"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if got := kubectl("exec", "first", "--", "sh", "-c", "cat /proc/version | while read a b kernel c; do echo $kernel; done"); got != "4.19.0-gvisor\n" {
		t.Errorf("a shell in the pod says that its kernel is %q", got)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("some words"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("cp", file, "first:/tmp/copy")
	if got := kubectl("exec", "first", "--", "cat", "/tmp/copy"); got != "some words" {
		t.Errorf("kubectl cp to the pod: got %q", got)
	}
	kubectl("cp", "first:/tmp/copy", file+"2")
	if got, err := os.ReadFile(file + "2"); string(got) != "some words" {
		t.Errorf("kubectl cp from the pod: got %q, %v", got, err)
	}

	pod := kubectl("get", "pod", "first", "-o", "jsonpath={.metadata.uid}")
	kill(t, filepath.Join(cache, "virtual-kubelet/nodes", cluster, "virtual-node/pid"))
	if len(below(t, cache)) == 0 {
		t.Error("no process of the pod outlives the node: this test shows nothing")
	}
	if out, err := script("down.sh"); err != nil {
		t.Errorf("down: %v\n%s", err, out)
	}
	if left := below(t, cache); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), cache) {
		t.Errorf("mounts are left (%v):\n%s", err, mounts)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "virtual-kubelet/*/*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	if left := groupsOfPods(t, pod); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
}

// kill kills the process whose ID is in a file.
func kill(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Fatalf("kill the process %q: %v", text, err)
	}
}

// groupsOfPods returns the control groups of a pod, by its UID.
func groupsOfPods(t *testing.T, uid string) (found []string) {
	t.Helper()
	if uid == "" {
		t.Fatal("the pod has no UID")
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error { // groups come and go
		if err == nil && e.IsDir() && strings.Contains(e.Name(), uid) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// demo returns a function that runs a script of hack/ for a cluster of its own. The files of the cluster are in
// cache.
func demo(t *testing.T, provider string) (cache, cluster string, script func(name string) (string, error)) {
	t.Helper()
	for _, binary := range []string{"../bin/devcluster", "../bin/virtual-kubelet", "../bin/runsc"} {
		if _, err := os.Stat(binary); err != nil {
			t.Skipf("find what make build makes: %v", err)
		}
	}
	compiled, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output() // otherwise, it is in the cache directory of the user
	if err != nil {
		t.Fatal(err)
	}
	cache, cluster = t.TempDir(), "up-"+strconv.Itoa(os.Getpid())
	script = func(name string) (string, error) {
		cmd := exec.Command("../hack/" + name) // not with the context of the test, which has ended in Cleanup
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "DEVCLUSTER_HOME="+filepath.Join(cache, "clusters"), "CLUSTER="+cluster, "PROVIDER="+provider,
			"GOCACHE="+strings.TrimSpace(string(compiled)))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	group := groupOfAnotherNode(t)
	t.Cleanup(func() {
		_, _ = script("down.sh") // again, if the test has failed before
		if _, err := os.Stat(group); group != "" && err != nil {
			t.Errorf("down removes what is not its own: %v", err)
		}
	})
	return cache, cluster, script
}

// groupOfAnotherNode makes the control group of a container, as another node on this machine would. It returns
// "" where this is not possible.
func groupOfAnotherNode(t *testing.T) string {
	t.Helper()
	root := "/sys/fs/cgroup/memory"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root = "/sys/fs/cgroup"
	}
	group := filepath.Join(root, "vk-another-"+strconv.Itoa(os.Getpid()))
	if os.Mkdir(group, 0o755) != nil { //nolint:gosec // as the kernel makes them
		return ""
	}
	t.Cleanup(func() { _ = os.Remove(group) }) // an error means that the test has failed
	return group
}

// TestUpWithAnotherCluster does the same as TestUpAndDown for a provider that runs pods in another cluster.
func TestUpWithAnotherCluster(t *testing.T) {
	cache, cluster, script := demo(t, "tensilekube")
	out, err := script("up.sh")
	if err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	for _, want := range []string{"✓ lower cluster: virtual node worker is ready", "✓ pod first is running", cluster + "-default-", " from first\n\nGo on"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	down(t, cache, script)
}

// firstLog matches a line of the log of pod first, which has a new line every two seconds. On a slow machine, the first line may be missing in the
// output.
var firstLog = regexp.MustCompile(`\n  hello \d+ from \S+\n`)

// TestUpWithAnEmulatedCloud does the same as TestUpAndDown for each cloud provider with an emulator, without an
// account. It reads the pod's log and runs a command in the pod.
func TestUpWithAnEmulatedCloud(t *testing.T) {
	for _, provider := range []string{"aci", "eci", "fargate", "stackpath", "zun"} {
		t.Run(provider, func(t *testing.T) {
			cache, _, script := demo(t, provider)
			out, err := script("up.sh")
			if err != nil {
				t.Fatalf("up: %v\n%s", err, out)
			}
			// In a container, the name of the machine comes from the service.
			for _, want := range []string{"✓ an emulator of " + provider + " runs", "✓ pod first is running", "A command in it (kubectl exec first -- hostname):\n  ", "\n\nGo on"} {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
			if !firstLog.MatchString(out) {
				t.Errorf("it does not show the log of the pod:\n%s", out)
			}
			down(t, cache, script)
		})
	}
}

// TestUpWithAzureBatch does the same as TestUpAndDown for Azure Batch. Its tasks are processes of machines,
// which have SSH servers for commands. Node and emulator are killed before the end.
func TestUpWithAzureBatch(t *testing.T) {
	cache, cluster, script := demo(t, "azurebatch")
	out, err := script("up.sh")
	if err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	host, err := os.Hostname() // a machine of the pool is a directory of this one
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"✓ an emulator of azurebatch runs", "✓ pod first is running", "Its log (kubectl logs first):\n  hello\n",
		"A command in it (kubectl exec first -- hostname):\n  " + host + "\n", "\n\nGo on",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	state := filepath.Join(cache, "virtual-kubelet/nodes", cluster, "virtual-node")
	kill(t, filepath.Join(state, "pid"))
	kill(t, filepath.Join(state, "emulator/pid"))
	if len(below(t, cache)) == 0 {
		t.Error("no task outlives the emulator: this test shows nothing")
	}
	down(t, cache, script)
}

// down runs the script of make down, and checks that no process and no file is left.
func down(t *testing.T, cache string, script func(string) (string, error)) {
	t.Helper()
	if out, err := script("down.sh"); err != nil {
		t.Errorf("down: %v\n%s", err, out)
	}
	if left := below(t, cache); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*/*/*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// below returns the processes whose working directory is in dir. The supervisors of containers are among them.
func below(t *testing.T, dir string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir+"/") { // also a directory that was removed in the meantime
			found = append(found, link)
		}
	}
	return found
}
