// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// taken is a provider that records the pods that it is asked to create.
type taken struct {
	*inprocess.Provider
	pods chan *corev1.Pod
}

// CreatePod implements node.PodLifecycleHandler.
func (p taken) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	p.pods <- pod.DeepCopy()
	return p.Provider.CreatePod(ctx, pod)
}

// TestPublishedA9PodOfTheQuickStartRuns checks that our plugin gives its provider the image without docker://,
// and the annotations slurm-job.vk.io/* unchanged. The image of a pod for interLink begins with docker://
// (README.md of interlink-slurm-plugin, templates of vk-test-set).
func TestPublishedA9PodOfTheQuickStartRuns(t *testing.T) {
	h := &home{Home: remotetest.NewHome(t, "vk-0"), dir: shortDir(t), cloud: inprocess.New(t.Context())}
	got := make(chan *corev1.Pod, 1)
	startPlugin(t, h.dir, cli.Provider{Name: "taken", New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
		return taken{inprocess.Open(h.cloud, inprocess.Objects{ConfigMaps: in.ConfigMaps, Secrets: in.Secrets}), got}, nil
	}}, "")
	h.startServer()
	h.config = Config{URL: h.url, StatusInterval: metav1.Duration{Duration: 200 * time.Millisecond}, earlier: time.Nanosecond}
	p, _ := h.start()
	p.UsePodObjects(withInit{h})
	pod := h.Pod("default", "interlink-quickstart", stays())
	pod.Annotations = map[string]string{
		"slurm-job.vk.io/flags": "--job-name=test-pod-cfg -t 2800  --ntasks=8 --nodes=1", "slurm-job.vk.io/image-root": "docker://",
		"slurm-job.vk.io/flavor": "default", "slurm-job.vk.io/pre-exec": "module load x",
	}
	pod.Spec.Containers[0].Image = "docker://busybox:latest"
	pod.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "docker://ghcr.io/grycap/cowsay", Args: program.Program{}.Args()}}
	h.Create(p, pod)
	made := <-got
	if i, m := made.Spec.InitContainers[0].Image, made.Spec.Containers[0].Image; i != "ghcr.io/grycap/cowsay" || m != "busybox:latest" {
		t.Errorf("the images are %q and %q", i, m)
	}
	for key, value := range pod.Annotations {
		if made.Annotations[key] != value {
			t.Errorf("annotation %s is %q, want %q", key, made.Annotations[key], value)
		}
	}
	h.UntilRuns(p, pod)
	if err := p.UpdatePod(t.Context(), pod); err != nil {
		t.Errorf("the image is another one: %v", err)
	}
}
