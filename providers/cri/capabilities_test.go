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

// TestImageVolumesAreRefusedWhereTheRuntimeIsTooOld: before the pod gets a sandbox, and with the reason.
func TestImageVolumesAreRefusedWhereTheRuntimeIsTooOld(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "app", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data"}}}},
	}}
	for _, test := range []struct{ name, version, want string }{
		{"containerd", "1.6.20~ds1", "containerd 1.6.20 has no image volumes, which came with 2.1.0"},
		{"containerd", "v2.0.5", "containerd 2.0.5 has no image volumes, which came with 2.1.0"},
		{"containerd", "2.1.0-rc.1", ""},
		{"containerd", "v2.2.0+unknown", ""},
		{"cri-o", "1.30.4", "cri-o 1.30.4 has no image volumes, which came with 1.31.0"},
		{"cri-o", "1.31.0", ""},
		{"other", "0.1.0", ""},
		{"containerd", "main", ""},
		{"", "", ""}, // it does not answer
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
		if unsupported := p.Capabilities().Check(pod); len(unsupported) > 0 {
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
