// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// TestSecurityD2EventsOfProvidersAreRedacted: events that a provider records itself are redacted, as its errors
// are.
func TestSecurityD2EventsOfProvidersAreRedacted(t *testing.T) {
	events := record.NewFakeRecorder(10)
	var given record.EventRecorder
	_, err := NewNode("n1", func(cfg ProviderConfig) (Provider, node.NodeProvider, error) {
		given = cfg.Recorder
		return newMemory().asProvider(cfg)
	}, WithClient(fake.NewClientset()), func(cfg *NodeConfig) error { cfg.EventRecorder = events; return nil })
	if err != nil {
		t.Fatal(err)
	}
	const said = "cannot pull from https://me:c4n4ry@registry.example"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u"}}
	about := &corev1.ObjectReference{Kind: "Pod", Namespace: "d", Name: "p", UID: "u", FieldPath: "spec.containers{c}"}
	given.Event(pod, corev1.EventTypeWarning, "Failed", said)
	given.Eventf(about, corev1.EventTypeWarning, "Failed", "it %s", said)
	given.AnnotatedEventf(about, map[string]string{"k": "v"}, corev1.EventTypeWarning, "Failed", "it %s", said)
	for range 3 {
		if text := <-events.Events; strings.Contains(text, "c4n4ry") || !strings.Contains(text, "cannot pull from https://") {
			t.Errorf("recorded is %q, want what was said without the password", text)
		}
	}
}
