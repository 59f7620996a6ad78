// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// TestNoisyPodThatFillsTheDiskIsEvicted checks that the pod that fills the disk is evicted, and not the largest
// pod of the last measurement. The node reports the eviction.
func TestNoisyPodThatFillsTheDiskIsEvicted(t *testing.T) {
	eachRuntime(t, func(t *testing.T, config process.Config) {
		for what, c := range map[string]struct{ script, resource string }{
			"root":     {"cat /dev/zero > /fill", "ephemeral-storage"},
			"emptyDir": {"cat /dev/zero > /data/fill", "ephemeral-storage"},
			"inodes":   {"mkdir /data/d; n=0; while true > /data/d/$n; do n=$((n+1)); done", "inodes"},
		} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				config := config // each parallel test has its own copy
				config.EvictionHard = map[string]string{"nodefs.available": "15%", "nodefs.inodesFree": "15%"}
				m := newNoisyNode(t, config, "size=48m,nr_inodes=1000")
				// The quiet pod is older, and has more data until the other pod begins to write.
				quiet := m.run("quiet", "dd if=/dev/zero of=/data/mine bs=1M count=2; dd if=/dev/zero of=/mine bs=1M count=1; echo ready; exec sleep 600", nil)
				m.until("the quiet pod to have files", func() bool { return strings.Contains(m.said("quiet"), "ready") })
				noisy := m.run("noisy", "while [ ! -e /data/go ]; do sleep 0.1; done; "+c.script+"; exec sleep 600", nil)
				m.running("noisy")
				stop := m.watch("quiet")
				m.measured("noisy")
				if _, err := m.exec("noisy", "true > /data/go"); err != nil {
					t.Fatal(err)
				}
				m.awaitPhase("noisy", corev1.PodFailed)
				s := m.status("noisy")
				if s.Reason != "Evicted" || !strings.HasPrefix(s.Message, "The node was low on resource: "+c.resource+". Threshold quantity: ") {
					t.Errorf("the pod says %s: %s", s.Reason, s.Message)
				}
				m.hears("Warning EvictionThresholdMet Attempting to reclaim " + c.resource)
				m.hears("Warning Evicted The node was low on resource: " + c.resource)
				m.hasCondition(corev1.NodeDiskPressure, "KubeletHasDiskPressure")
				refused := m.run("refused", "exec sleep 600", nil)
				m.awaitPhase("refused", corev1.PodFailed)
				if s := m.status("refused"); s.Reason != "Evicted" || !strings.Contains(s.Message, "DiskPressure") {
					t.Errorf("a pod that comes meanwhile says %s: %s", s.Reason, s.Message)
				}
				stop()
				m.delete(noisy, refused)
				if bytes, files := m.free(); bytes < 16<<20 || files < 300 {
					t.Errorf("after the deletion the disk has %d bytes and %d files", bytes, files)
				}
				m.delete(quiet)
				m.nothing()
			})
		}
	})
}

// TestSecurityF4APodThatFillsTheDiskIsEvictedByDefault checks the eviction without any setting. A pod that waits
// for room meanwhile has the reason in an event and in its status.
func TestSecurityF4APodThatFillsTheDiskIsEvictedByDefault(t *testing.T) {
	eachRuntime(t, func(t *testing.T, config process.Config) {
		for what, script := range map[string]string{
			"bytes":  "while :; do cat /dev/zero >> /fill; sleep 0.02; done",
			"inodes": "mkdir /d; n=0; while :; do true > /d/$n && n=$((n+1)) || sleep 0.02; done 2> /dev/null",
		} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				m := newNoisyNode(t, config, "size=48m,nr_inodes=1000")
				quiet := m.run("quiet", "exec sleep 600", nil)
				m.running("quiet")
				stop := m.watch("quiet")
				noisy := m.run("noisy", script, nil)
				m.running("noisy")
				m.untilFull()
				waits := m.run("waits", "exec sleep 600", nil)
				m.hears("Warning Failed", "no space left on device")
				m.until("the pod to say that it waits for room", func() bool {
					s := m.status("waits")
					return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].State.Waiting != nil &&
						strings.Contains(s.ContainerStatuses[0].State.Waiting.Message, "no space left on device")
				})
				m.awaitPhase("noisy", corev1.PodFailed)
				if s := m.status("noisy"); s.Reason != "Evicted" || !strings.HasPrefix(s.Message, "The node was low on resource: ") {
					t.Errorf("the pod says %s: %s", s.Reason, s.Message)
				}
				m.hasCondition(corev1.NodeDiskPressure, "KubeletHasDiskPressure")
				m.running("waits") // there is room again before the evicted pod is deleted
				stop()
				if bytes, files := m.free(); bytes < 16<<20 || files < 300 {
					t.Errorf("after the eviction the disk has %d bytes and %d files", bytes, files)
				}
				m.delete(noisy, quiet, waits)
				m.nothing()
			})
		}
	})
}

// TestNoisyPodBeyondItsStorageLimitIsEvicted checks the storage limits of containers and of volumes. The disk
// has enough room, so other pods stay.
func TestNoisyPodBeyondItsStorageLimitIsEvicted(t *testing.T) {
	eachRuntime(t, func(t *testing.T, config process.Config) {
		m := newNoisyNode(t, config, "size=96m,nr_inodes=1000")
		quiet := m.run("quiet", "exec sleep 600", nil)
		stop := m.watch("quiet")
		limit := resource.MustParse("4Mi")
		fill := "dd if=/dev/zero of=$F bs=1M count=8; exec sleep 600"
		root := m.run("root", strings.ReplaceAll(fill, "$F", "/fill"), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: limit}
		})
		volume := m.run("volume", strings.ReplaceAll(fill, "$F", "/data/fill"), func(p *corev1.Pod) {
			p.Spec.Volumes[1].EmptyDir.SizeLimit = &limit
		})
		for name, want := range map[string]string{
			"root":   "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. ",
			"volume": `Usage of EmptyDir volume "data" exceeds the limit "4Mi". `,
		} {
			m.awaitPhase(name, corev1.PodFailed)
			if s := m.status(name); s.Reason != "Evicted" || s.Message != want {
				t.Errorf("pod %s says %s: %q, want %q", name, s.Reason, s.Message, want)
			}
			m.hears("Warning Evicted " + want)
		}
		stop()
		m.delete(root, volume, quiet)
		m.nothing()
	})
}

// measured waits until the node has measured a pod.
func (m *noisyNode) measured(name string) {
	m.t.Helper()
	m.until("pod "+name+" to be measured", func() bool {
		summary, err := m.pods.GetStatsSummary(m.t.Context())
		if err != nil {
			return false
		}
		for _, p := range summary.Pods {
			if p.PodRef.Name == name {
				return p.EphemeralStorage != nil && len(p.VolumeStats) > 0
			}
		}
		return false
	})
}

func (m *noisyNode) hasCondition(kind corev1.NodeConditionType, reason string) {
	m.t.Helper()
	m.until("the node to say "+string(kind), func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.node != nil && slices.ContainsFunc(m.node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == kind && c.Status == corev1.ConditionTrue && c.Reason == reason
		})
	})
}
