// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// TestHostPortsThatNobodyMapsAreRefused checks a runtime whose network has no plugin for host ports: it would
// silently ignore them.
func TestHostPortsThatNobodyMapsAreRefused(t *testing.T) {
	const (
		lo     = `{"Config":{"Name":"cni-loopback","Plugins":[{"Network":{"type":"loopback"}}]},"IFName":"lo"}`
		bridge = `{"Network":{"type":"bridge"}}`
		mapper = `{"Network":{"type":"portmap","capabilities":{"portMappings":true}}}`
	)
	network := func(plugins string) string {
		return `{"Networks":[` + lo + `,{"Config":{"Name":"pods","Plugins":[` + plugins + `]},"IFName":"eth0"}]}`
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}}}}}
	const why = "this node cannot run the pod: spec.containers[0].ports[0].hostPort: the runtime's network pods has no plugin for host ports, such as portmap"
	for _, test := range []struct{ name, info, want string }{
		{"without the plugin", network(bridge), why},
		{"with the plugin", network(bridge + "," + mapper), ""},
		{"no network yet", `{"Networks":[` + lo + `]}`, ""},
		{"another runtime", "", ""},
		{"another form", `{"Networks":{}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			stop := serve(t, filepath.Join(dir, "s"), &scripted{info: map[string]string{"cniconfig": test.info}})
			defer stop()
			in := cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{
				Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, Recorder: record.NewFakeRecorder(1),
			}}
			p, err := New(t.Context(), in, Config{Endpoint: "unix://" + filepath.Join(dir, "s"), Root: filepath.Join(dir, "r"), LogRoot: filepath.Join(dir, "l")})
			if err != nil {
				t.Fatal(err)
			}
			defer p.client.Close(t.Context())
			got := ""
			if refused := p.Capabilities().Check(pod); len(refused) > 0 {
				got = capability.Message(refused)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
