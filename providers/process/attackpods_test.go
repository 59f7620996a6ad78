// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// ownObjects is a node.PodObjects without ConfigMaps and Secrets that returns containers unchanged.
type ownObjects struct{ noObjects }

func (ownObjects) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return pod.Spec.Containers[i].DeepCopy(), nil
		}
	}
	return nil, fmt.Errorf("the pod has no container %s", name)
}

// partsOf returns a pod whose containers repeatedly list parts of the volume and the labels of the pod.
func partsOf(volume string) *corev1.Pod {
	list := func(name string, mount corev1.VolumeMount) corev1.Container {
		mount.MountPath = "/m"
		return corev1.Container{
			Name: name, Image: "demo", ImagePullPolicy: corev1.PullNever, Command: []string{"ls", "/m"}, VolumeMounts: []corev1.VolumeMount{mount},
			Env: []corev1.EnvVar{{Name: "POD", Value: "d"}}, TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}
	}
	host := func(name, path string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
	}
	none, grace := false, int64(1)
	labels := corev1.Volume{Name: "labels", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
		DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "dir/inside", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels"}}}},
	}}}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "parts", UID: types.UID("parts" + mine), Labels: map[string]string{"app": "parts"}},
		Spec: corev1.PodSpec{
			NodeName: "n1", RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace, DNSPolicy: corev1.DNSDefault, AutomountServiceAccountToken: &none,
			Volumes: []corev1.Volume{host("v", volume), host("d", filepath.Join(volume, "d")), labels},
			Containers: []corev1.Container{
				list("sub", corev1.VolumeMount{Name: "v", SubPath: "d"}), list("expr", corev1.VolumeMount{Name: "v", SubPathExpr: "$(POD)/sub"}),
				list("whole", corev1.VolumeMount{Name: "d"}), list("below", corev1.VolumeMount{Name: "d", SubPath: "sub"}), list("labels", corev1.VolumeMount{Name: "labels", SubPath: "dir"}),
			},
		},
	}
}

// TestSecurityJ9PodsThatMountPartsOfAVolume starts, restarts and ends pods while a directory on the path of
// their volume is swapped with a link to the machine.
func TestSecurityJ9PodsThatMountPartsOfAVolume(t *testing.T) {
	w := open(t, nil)
	volume, outside := volumeWithTrap(t)
	link := filepath.Join(volume, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	in := cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, Recorder: record.NewFakeRecorder(1000)},
		InternalIP:     "127.0.0.1", KubeClusterDomain: "cluster.local",
	}
	config := w.config
	config.StateDir, config.HostPaths = t.TempDir(), []string{filepath.Dir(volume)}
	p, err := process.New(t.Context(), in, config)
	if err != nil {
		t.Fatal(err)
	}
	p.UsePodObjects(ownObjects{})
	p.NotifyPods(t.Context(), func(*corev1.Pod) {})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.RunInBackground(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { removeCgroups(mine) })
	pod := partsOf(volume)
	swap(t, filepath.Join(volume, "d"), link)
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	logs := func() (said string) {
		paths, err := filepath.Glob(filepath.Join(config.StateDir, "logs", "*", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, _ := os.ReadFile(path) // older files are removed concurrently
			said += string(data)
		}
		return said
	}
	said := ""
	w.until("each container to have started twice, or been refused", func() bool {
		said += logs()
		status, err := p.GetPodStatus(t.Context(), pod.Namespace, pod.Name)
		if err != nil || len(status.ContainerStatuses) != len(pod.Spec.Containers) {
			return false
		}
		for _, c := range status.ContainerStatuses {
			if c.RestartCount == 0 && (c.State.Waiting == nil || c.State.Waiting.Reason == "ContainerCreating" || c.State.Waiting.Reason == "PodInitializing") {
				return false
			}
		}
		return strings.Contains(said, "inside")
	})
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.until("the deletion", func() bool {
		said += logs()
		pods, err := p.GetPods(t.Context())
		return err == nil && len(pods) == 0
	})
	if strings.Contains(said, secret) {
		t.Errorf("a container lists the machine:\n%s", said)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 2 {
		t.Errorf("on the machine is now %v, %v", entries, err)
	}
}
