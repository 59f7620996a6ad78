// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestPodWithoutUIDIsTheGivenOne checks which UID a pod of a backend without UIDs gets.
func TestPodWithoutUIDIsTheGivenOne(t *testing.T) {
	const key = "d/p"
	ended := memory.Ended(bound("p", ""), 1)
	for _, tt := range []struct {
		name  string
		given func(*givenUIDs)
		pod   *corev1.Pod
		api   *corev1.Pod
		want  types.UID
	}{
		{name: "a pod with a UID", given: func(g *givenUIDs) { g.recordAccepted(key, "a") }, pod: bound("p", "z"), want: "z"},
		{name: "nothing was given", given: func(*givenUIDs) {}, pod: bound("p", ""), want: "unknown:d/p"},
		{name: "nothing was given since a restart", given: func(*givenUIDs) {}, pod: bound("p", ""), api: bound("p", "b"), want: "b"},
		{name: "one was given that nobody wants", given: func(g *givenUIDs) { g.recordAccepted(key, "a") }, pod: bound("p", ""), want: "a"},
		{name: "another than the wanted one was given", given: func(g *givenUIDs) { g.recordAccepted(key, "a") }, pod: bound("p", ""), api: bound("p", "b"), want: "a"},
		{name: "the next one is being given, and one runs", given: func(g *givenUIDs) { g.recordAccepted(key, "a"); g.recordCreate(key, "b") }, pod: bound("p", ""), want: "b"},
		{name: "the next one is being given, and one has ended", given: func(g *givenUIDs) { g.recordAccepted(key, "a"); g.recordCreate(key, "b") }, pod: ended, want: "a"},
		{name: "the next one is given again", given: func(g *givenUIDs) { g.recordAccepted(key, "a"); g.recordCreate(key, "b"); g.recordCreate(key, "b") }, pod: ended, want: "a"},
		{name: "the next one is accepted", given: func(g *givenUIDs) { g.recordAccepted(key, "a"); g.recordCreate(key, "b"); g.recordAccepted(key, "b") }, pod: ended, want: "b"},
		{name: "the name was denied", given: func(g *givenUIDs) { g.recordAccepted(key, "a"); g.recordCreate(key, "b"); g.recordDenied(key) }, pod: ended, want: "b"},
		{name: "the name of none was denied", given: func(g *givenUIDs) { g.recordDenied(key) }, pod: ended, api: bound("p", "b"), want: "b"},
		{name: "one was told to stop that was not given", given: func(g *givenUIDs) { g.supposeGiven(key, "a") }, pod: bound("p", ""), api: bound("p", "b"), want: "a"},
		{name: "one was told to stop after the next was given", given: func(g *givenUIDs) { g.recordAccepted(key, "b"); g.supposeGiven(key, "a") }, pod: bound("p", ""), want: "b"},
		{name: "an unknown pod turns out to be wanted", given: func(*givenUIDs) {}, pod: bound("p", "unknown:d/p"), api: bound("p", "b"), want: "b"},
		{name: "the name is forgotten", given: func(g *givenUIDs) { g.recordAccepted(key, "a"); g.forgetName(key) }, pod: bound("p", ""), want: "unknown:d/p"},
		{name: "another process acted", given: func(g *givenUIDs) { g.recordAccepted(key, "a"); g.forgetAll() }, pod: bound("p", ""), api: bound("p", "b"), want: "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &givenUIDs{of: map[string]givenPod{}}
			tt.given(g)
			uid := tt.pod.UID
			if got := g.stampUID(tt.pod, tt.api); got.UID != tt.want {
				t.Errorf("it is %q, want %q", got.UID, tt.want)
			}
			if tt.pod.UID != uid {
				t.Error("the provider's pod was changed")
			}
		})
	}
	if got := (&givenUIDs{}).stampUID(nil, nil); got != nil {
		t.Errorf("no pod became %+v", got)
	}
}

// deletedUIDs is a provider that records the UIDs of the pods in DeletePod.
type deletedUIDs struct {
	*memory.Backend
	uids []types.UID
}

func (d *deletedUIDs) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	d.uids = append(d.uids, pod.UID)
	return d.Backend.DeletePod(ctx, pod)
}

// TestProviderSeesNoUIDThatTheNodeMadeUp: a backend without UIDs has two pods, and this process created one of them.
func TestProviderSeesNoUIDThatTheNodeMadeUp(t *testing.T) {
	b := memory.New()
	b.KeepsNoUID = true
	provider := &deletedUIDs{Backend: b}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Delete("d", "p", 0)
		w.pass(10 * time.Second)
		b.Run(bound("q", "x"))
		w.but = []string{"S7"} // the API server never had the pod
		w.pass(time.Minute)
		if !slices.Equal(provider.uids, []types.UID{"a", ""}) || b.Len() != 0 {
			t.Errorf("DeletePod was called for the UIDs %q, and %d pods are left, want a, none, and no pod", provider.uids, b.Len())
		}
	}, func(cfg *PodControllerConfig) { cfg.Provider = provider })
}
