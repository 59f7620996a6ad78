// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// partial is a provider that has a feature, but not one of its fields.
type partial struct {
	node.PodLifecycleHandler
	created int
}

func (*partial) Capabilities() capability.Declaration {
	return capability.Only(capability.RunAsUser).LacksFields("the backend knows no groups", capability.RunAsUser, "supplementalGroups")
}

func (p *partial) CreatePod(context.Context, *corev1.Pod) error {
	p.created++
	return nil
}

// TestPodWithALackingFieldIsRefused checks that the server refuses the pod: the node does not, because it gets
// only whole features.
func TestPodWithALackingFieldIsRefused(t *testing.T) {
	p := &partial{}
	s := &server{provider: p}
	create := func(groups ...int64) error {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SupplementalGroups: groups}}}
		encoded, err := wire.Marshal(encoding, pod)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CreatePod(t.Context(), &rpc.PodRequest{Pod: encoded})
		return err
	}
	if err := create(); err != nil || p.created != 1 {
		t.Errorf("without the field: %v, %d pods created", err, p.created)
	}
	if err := create(1000); err == nil || !strings.Contains(err.Error(), "spec.securityContext.supplementalGroups: the backend knows no groups") || p.created != 1 {
		t.Errorf("with the field: %v, %d pods created", err, p.created)
	}
}
