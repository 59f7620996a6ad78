// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func TestStatsOfPods(t *testing.T) {
	inWorld(t, fakecri.Config{NoPodStats: true}, func(t *testing.T, w *world) {
		pod := usagePod()
		w.create(pod)
		w.awaitRunning(pod)
		c, _ := w.Find(pod.Name, "c")
		w.SetUsage(c.ID, fakecri.Usage{CPUNanoSeconds: 5e9, WorkingSet: 77, DiskBytes: 100})
		summary, err := w.runtime.GetStatsSummary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(summary.Pods) != 1 || summary.Pods[0].PodRef.UID != string(pod.UID) || *summary.Pods[0].Memory.WorkingSetBytes != 77 {
			t.Fatalf("pods %v", summary.Pods)
		}
		got := summary.Pods[0]
		if len(got.VolumeStats) != 1 || got.VolumeStats[0].Name != "scratch" {
			t.Errorf("volumes %v", got.VolumeStats)
		}
		if got.EphemeralStorage == nil || *got.EphemeralStorage.UsedBytes < 100 {
			t.Errorf("ephemeral storage %v", got.EphemeralStorage)
		}
		if got.Containers[0].Logs == nil || *got.Containers[0].Logs.InodesUsed != 2 {
			t.Errorf("logs %v: want the directory and a file in it", got.Containers[0].Logs)
		}
		families, err := w.runtime.GetMetricsResource(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range families {
			found = found || f.GetName() == "container_memory_working_set_bytes" && f.Metric[0].GetGauge().GetValue() == 77
		}
		if !found {
			t.Errorf("metrics %v", families)
		}
	})
}

func usagePod() *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways,
		Volumes:       []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		Containers: []corev1.Container{{
			Name: "c", Image: "app", VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}},
		}},
	}}
	pod.Namespace, pod.Name, pod.UID = "default", "used", "uid-used"
	return pod
}

func TestConfigureNode(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		n := &corev1.Node{Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
			NodeInfo: corev1.NodeSystemInfo{OSImage: "mine"},
		}}
		w.runtime.ConfigureNode(t.Context(), n)
		for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
			if list.Cpu().Value() != 3 || list.Pods().Value() != 110 {
				t.Errorf("resources %v: what the node says itself counts, and else the machine", list)
			}
		}
		if i := n.Status.NodeInfo; i.OSImage != "mine" || i.Architecture != runtime.GOARCH {
			t.Errorf("info %v", i)
		}
		if version := n.Status.NodeInfo.ContainerRuntimeVersion; version != "fakecri://1.0.0" {
			t.Errorf("runtime %q", version)
		}
	})
}
