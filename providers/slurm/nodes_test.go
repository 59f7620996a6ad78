// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNodeIsReady checks that the node has each condition once, is ready while Ping finds no error, and stays
// ready when the partition changes.
func TestNodeIsReady(t *testing.T) {
	p := home(&driver{slurm: commandOf(t, "sinfo", "echo 'n1|8|4000|idle|up|main*|(null)'")})
	n := &corev1.Node{}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}, {Type: corev1.NodeDiskPressure}} // the state at the start of the program
	p.in.Node = n
	p.ConfigureNode(t.Context(), n)
	check := func(n *corev1.Node, cpus int64) {
		t.Helper()
		has := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		for _, c := range n.Status.Conditions {
			if _, twice := has[c.Type]; twice {
				t.Errorf("condition %s is there twice", c.Type)
			}
			has[c.Type] = c.Status
		}
		if has[corev1.NodeReady] != corev1.ConditionTrue || has[corev1.NodeDiskPressure] != corev1.ConditionFalse || len(has) != 5 {
			t.Errorf("conditions %v", has)
		}
		if got := n.Status.Capacity.Cpu().Value(); got != cpus {
			t.Errorf("%d CPUs, labels %v", got, n.Labels)
		}
	}
	check(n, 8)
	var told *corev1.Node
	p.provider.NotifyNodeStatus(t.Context(), func(n *corev1.Node) { told = n })
	p.slurm = commandOf(t, "sinfo", "echo 'n1|16|4000|idle|up|main*|(null)'")
	p.lookAtPartition(t.Context())
	if told == nil {
		t.Fatal("the new capacity is not told")
	}
	check(told, 16)
}

// TestCapacityComesLater checks that the capacity of a partition that did not answer at the start is reported
// later, also if the partition answers before the node listens.
func TestCapacityComesLater(t *testing.T) {
	for _, late := range []bool{false, true} {
		p := home(&driver{slurm: commandOf(t, "sinfo", "exit 1")})
		p.in.Node = &corev1.Node{}
		n := &corev1.Node{}
		p.provider.ConfigureNode(t.Context(), n)
		if got := n.Status.Capacity.Cpu().Value(); got != 0 {
			t.Fatalf("%d CPUs of a partition that does not answer", got)
		}
		var told []int64
		listen := func(n *corev1.Node) { told = append(told, n.Status.Capacity.Cpu().Value()) }
		if !late {
			p.provider.NotifyNodeStatus(t.Context(), listen)
		}
		p.slurm = commandOf(t, "sinfo", "echo 'n1|16|4000|idle|up|main*|(null)'")
		p.lookAtPartition(t.Context())
		if late {
			p.provider.NotifyNodeStatus(t.Context(), listen)
		}
		p.lookAtPartition(t.Context())
		if len(told) != 1 || told[0] != 16 {
			t.Errorf("late %v: told %v CPUs, want 16 once", late, told)
		}
	}
}
