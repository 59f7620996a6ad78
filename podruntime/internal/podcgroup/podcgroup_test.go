// SPDX-License-Identifier: Apache-2.0

package podcgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files makes the files that the kernel would make in a group.
func files(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
}

func content(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return string(data)
}

const (
	pod1 = types.UID("u1")
	pod2 = types.UID("u2")
)

// TestLimitsInTheWordsOfVersion2 checks the values that are written for cgroups of version 2. The files are
// plain files with the kernel's names.
func TestLimitsInTheWordsOfVersion2(t *testing.T) {
	root := t.TempDir()
	files(t, root, "cgroup.controllers", "cgroup.subtree_control")
	tree := New(Machine(root), "/parent/pods-n")
	must(t, tree.Prepare(Limits{}))
	must(t, tree.Make(pod1, corev1.PodQOSBurstable, Limits{}))
	dir := filepath.Join(root, tree.Group(pod1, corev1.PodQOSBurstable))
	if want := filepath.Join(root, "parent/pods-n/burstable/podu1"); dir != want {
		t.Fatalf("the group is %s, want %s", dir, want)
	}
	names := []string{"cgroup.subtree_control", "cpu.weight", "cpu.max", "memory.max", "pids.max"}
	files(t, dir, names...)
	limits := Limits{CPUShares: 1024, CPUQuota: 50_000, CPUPeriod: 100_000, Memory: 1 << 20, Pids: 7}
	must(t, tree.Make(pod1, corev1.PodQOSBurstable, limits))
	for file, want := range map[string]string{"cpu.weight": "39", "cpu.max": "50000 100000", "memory.max": "1048576", "pids.max": "7", "cgroup.subtree_control": "+pids"} {
		if got := content(t, dir, file); got != want {
			t.Errorf("%s has %q, want %q", file, got, want)
		}
	}
	// A pod that shrinks keeps its limits until its containers are smaller. A pod that grows gets its new limits
	// before its containers grow.
	must(t, tree.Raise(tree.Group(pod1, corev1.PodQOSBurstable), Limits{CPUQuota: 20_000, CPUPeriod: 100_000, Memory: 2 << 20}))
	for file, want := range map[string]string{"cpu.max": "50000 100000", "memory.max": "2097152"} {
		if got := content(t, dir, file); got != want {
			t.Errorf("raised: %s has %q, want %q", file, got, want)
		}
	}
	must(t, tree.Make(pod1, corev1.PodQOSBurstable, Limits{CPUPeriod: 100_000, Memory: -1, Pids: -1}))
	for file, want := range map[string]string{"cpu.max": "max 100000", "memory.max": "max", "pids.max": "max"} {
		if got := content(t, dir, file); got != want {
			t.Errorf("no limit: %s has %q, want %q", file, got, want)
		}
	}
}

// TestClassHasTheSharesOfItsPods: the cgroup of a class has the sum of its pods' CPU shares. Otherwise one pod
// without requests would get as much CPU as all pods with requests.
func TestClassHasTheSharesOfItsPods(t *testing.T) {
	root := t.TempDir()
	in := Hierarchies{Controllers: map[string]string{"cpu": filepath.Join(root, "cpu"), "memory": filepath.Join(root, "memory")}}
	must(t, os.Mkdir(filepath.Join(root, "cpu"), 0o700))
	must(t, os.Mkdir(filepath.Join(root, "memory"), 0o700))
	tree := New(in, "pods")
	must(t, tree.Prepare(Limits{}))
	class := filepath.Join(root, "cpu", "pods", "burstable")
	files(t, class, "cpu.shares")
	for _, step := range []struct {
		do   func() error
		want string
	}{
		{func() error { return tree.Make(pod1, corev1.PodQOSBurstable, Limits{CPUShares: 100}) }, "100"},
		{func() error { return tree.Know(pod2, corev1.PodQOSBurstable, Limits{CPUShares: 300}) }, "400"},
		{func() error { return tree.Know("u3", corev1.PodQOSGuaranteed, Limits{CPUShares: 500}) }, "400"},
		{func() error { return tree.Remove(pod1) }, "300"},
		{func() error { return tree.Remove(pod2) }, "2"},
	} {
		must(t, step.do())
		if got := content(t, class, "cpu.shares"); got != step.want {
			t.Errorf("the class has %s shares, want %s", got, step.want)
		}
	}
}

// TestOnlyGroupsOfPodsAreRemoved: Remove deletes the groups of one pod. The groups of other pods, and groups
// outside the tree, stay.
func TestOnlyGroupsOfPodsAreRemoved(t *testing.T) {
	root := t.TempDir()
	files(t, root, "cgroup.controllers")
	other := t.TempDir() // a hierarchy in which only the runtime makes groups
	tree := New(At(map[string]string{"": root, "devices": other}), "/parent/pods-n")
	must(t, tree.Prepare(Limits{}))
	must(t, tree.Make(pod1, corev1.PodQOSBestEffort, Limits{}))
	must(t, tree.Make(pod2, corev1.PodQOSGuaranteed, Limits{}))
	deep := filepath.Join(root, "parent/pods-n/besteffort/podu1/container/nested")
	made := filepath.Join(other, "parent/pods-n/besteffort/podu1/container")
	beside := filepath.Join(root, "parent/podu1")
	elsewhere := filepath.Join(root, "parent/pods-m/podu1")
	for _, dir := range []string{deep, made, beside, elsewhere} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	uids := tree.Pods()
	slices.Sort(uids)
	if !slices.Equal(uids, []types.UID{pod1, pod2}) {
		t.Errorf("pods with groups: got %v", uids)
	}
	must(t, tree.Remove(pod1))
	for _, gone := range []string{filepath.Join(root, "parent/pods-n/besteffort/podu1"), filepath.Join(other, "parent/pods-n/besteffort/podu1")} {
		if _, err := os.Stat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	for _, there := range []string{beside, elsewhere, filepath.Join(root, "parent/pods-n/podu2"), filepath.Join(root, "parent/pods-n/besteffort")} {
		if _, err := os.Stat(there); err != nil {
			t.Errorf("what is not of the pod is gone: %v", err)
		}
	}
}

// TestRefusedCountsThePodAndItsContainers: Refused adds the counts of a pod and of its containers, because
// kernels differ in where they count.
func TestRefusedCountsThePodAndItsContainers(t *testing.T) {
	root := t.TempDir()
	files(t, root, "cgroup.controllers")
	tree := New(Machine(root), "pods")
	must(t, tree.Make(pod1, corev1.PodQOSGuaranteed, Limits{}))
	group := tree.Group(pod1, corev1.PodQOSGuaranteed)
	if n := tree.Refused()[pod1]; n != 0 {
		t.Errorf("got %d before anything was refused", n)
	}
	must(t, os.Mkdir(filepath.Join(root, group, "c"), 0o700))
	for dir, n := range map[string]string{"": "2", "c": "3"} {
		must(t, os.WriteFile(filepath.Join(root, group, dir, "pids.events"), []byte("max "+n+"\n"), 0o600))
	}
	if n := tree.Refused(); n[pod1] != 5 || len(n) != 1 {
		t.Errorf("got %v, want 5", n)
	}
}

func TestHierarchiesOfTheMachine(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"cpu", "memory", "pids", "freezer", "no-hierarchy"} {
		must(t, os.Mkdir(filepath.Join(root, dir), 0o700))
		if !strings.HasPrefix(dir, "no") {
			files(t, filepath.Join(root, dir), "cgroup.procs")
		}
	}
	in := Machine(root)
	if in.Unified != "" || len(in.Controllers) != 3 || !slices.Equal(in.Others, []string{filepath.Join(root, "freezer")}) {
		t.Errorf("got %+v", in)
	}
	if err := New(Machine(filepath.Join(root, "none")), "pods").Prepare(Limits{}); err == nil {
		t.Error("a machine without cgroups: got no error")
	}
}
