// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// TestWhatTheRuntimeIsTooOldForIsRefused checks that a pod that needs a newer runtime is refused before it has a
// sandbox, with the reason.
func TestWhatTheRuntimeIsTooOldForIsRefused(t *testing.T) {
	kill := corev1.SIGKILL
	signal := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "app", Lifecycle: &corev1.Lifecycle{StopSignal: &kill}}}}}
	volume := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "app", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data"}}}},
	}}
	for _, test := range []struct {
		name, version, want string
		pod                 *corev1.Pod
	}{
		{"containerd", "1.6.20~ds1", "containerd 1.6.20 has no image volumes, which came with 2.1.0", volume},
		{"containerd", "v2.0.5", "containerd 2.0.5 has no image volumes, which came with 2.1.0", volume},
		{"containerd", "2.1.0-rc.1", "", volume},
		{"containerd", "v2.2.0+unknown", "", volume},
		{"cri-o", "1.30.4", "cri-o 1.30.4 has no image volumes, which came with 1.31.0", volume},
		{"cri-o", "1.31.0", "", volume},
		{"other", "0.1.0", "", volume},
		{"containerd", "main", "", volume},
		{"", "", "", volume}, // the runtime does not answer
		{"containerd", "1.6.20~ds1", "containerd 1.6.20 has no stop signals of pods, which came with 2.3.0", signal},
		{"containerd", "2.3.0", "", signal},
		{"cri-o", "1.32.9", "cri-o 1.32.9 has no stop signals of pods, which came with 1.33.0", signal},
		{"cri-o", "1.33.0", "", signal},
		{"other", "0.1.0", "", signal},
	} {
		dir := t.TempDir()
		s := &scripted{}
		if test.name != "" {
			s.version = &runtimeapi.VersionResponse{RuntimeName: test.name, RuntimeVersion: test.version}
		}
		stop := serve(t, filepath.Join(dir, "s"), s)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		in := cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: node, Recorder: record.NewFakeRecorder(1)}}
		p, err := New(t.Context(), in, Config{Endpoint: "unix://" + filepath.Join(dir, "s"), Root: filepath.Join(dir, "r"), LogRoot: filepath.Join(dir, "l")})
		if err != nil {
			t.Fatal(err)
		}
		refused := ""
		if unsupported := p.Capabilities().Check(test.pod); len(unsupported) > 0 {
			refused = capability.Message(unsupported)
		}
		if test.want == "" && refused != "" || !strings.Contains(refused, test.want) {
			t.Errorf("%s %s: got %q, want %q", test.name, test.version, refused, test.want)
		}
		if err := p.client.Close(t.Context()); err != nil {
			t.Error(err)
		}
		stop()
	}
}
