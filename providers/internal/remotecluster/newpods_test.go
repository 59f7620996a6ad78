// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// atHome adds a pod only to the home cluster.
func atHome(t *testing.T, c *Cluster, pod *corev1.Pod) {
	t.Helper()
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := index.Add(pod); err != nil {
		t.Fatal(err)
	}
	c.config.Pods = corev1listers.NewPodLister(index)
	c.claim.held = true
	c.UsePodObjects(noObjects{})
}

// noObjects is a home without Services, ConfigMaps and Secrets.
type noObjects struct{ node.PodObjects }

// Container implements node.PodObjects.
func (noObjects) Container(context.Context, *corev1.Pod, string) (*corev1.Container, error) {
	return &corev1.Container{}, nil
}

// TestPodThatNoWatchShowsIsThere checks that a created pod exists until the remote cluster returns not-found, although the watch has
// no event for minutes.
func TestPodThatNoWatchShowsIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		c := inMemory(t, r, 0, nil)
		c.UsePodTokens(&counted{})
		home := withToken(0)
		atHome(t, c, home)
		c.config.Namespace = "r"
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.RunInBackground(ctx) }()
		if err := c.CreatePod(ctx, home); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if _, err := c.GetPod(ctx, "default", "web-0"); err != nil {
			t.Errorf("GetPod of a pod that no watch shows: %v", err)
		}
		if list, err := c.GetPods(ctx); err != nil || len(list) != 1 {
			t.Errorf("there are %d pods (%v), want the one that was made", len(list), err)
		}
		r.forget()
		time.Sleep(time.Minute)
		if _, err := c.GetPod(ctx, "default", "web-0"); !errdefs.IsNotFound(err) {
			t.Errorf("GetPod of a pod that is gone unseen: got %v, want the kind not-found", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestPodWithoutAnAnswerKeepsItsCopies loses the answer to a create. The objects that the pod names stay until
// it is known whether the pod exists.
func TestPodWithoutAnAnswerKeepsItsCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{loses: true}
		c := inMemory(t, r, 0, nil)
		c.UsePodTokens(&counted{})
		home := withToken(0)
		atHome(t, c, home)
		c.config.Namespace = "r"
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.RunInBackground(ctx) }()
		if err := c.CreatePod(ctx, home); err == nil {
			t.Fatal("the answer was not lost")
		}
		copied := object{KindSecret, "r", c.config.Home.filesName(home)}
		if !c.namesCopy(copied) {
			t.Error("what a pod needs that may be there is removed")
		}
		time.Sleep(time.Minute)
		if _, err := c.GetPod(ctx, "default", "web-0"); err != nil || !c.namesCopy(copied) {
			t.Errorf("GetPod of a pod that was found: %v; its copy is named: %t", err, c.namesCopy(copied))
		}
		r.forget()
		time.Sleep(time.Minute)
		if c.namesCopy(copied) {
			t.Error("what nobody needs is kept")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestLateWatchOfARemovedCopy checks that a copy that was just removed is written again for another pod, although the watch cache
// still has it.
func TestLateWatchOfARemovedCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		c := inMemory(t, r, 0, nil)
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "r", Name: "copy", UID: "m", ResourceVersion: "7"}}
		s := &corev1.Secret{ObjectMeta: m.ObjectMeta, Type: corev1.SecretTypeOpaque}
		if err := c.cache.configMaps.GetStore().Add(m); err != nil {
			t.Fatal(err)
		}
		if err := c.cache.secrets.GetStore().Add(s); err != nil {
			t.Fatal(err)
		}
		c.copies.collectUnneeded(t.Context(), true)
		time.Sleep(time.Minute) // the longest possible delay
		r.asked()
		want := metav1.ObjectMeta{Namespace: "r", Name: "copy"}
		if err := c.copies.putConfigMap(t.Context(), &corev1.ConfigMap{ObjectMeta: want}); err != nil {
			t.Fatal(err)
		}
		if err := c.copies.putSecret(t.Context(), &corev1.Secret{ObjectMeta: want, Type: corev1.SecretTypeOpaque}); err != nil {
			t.Fatal(err)
		}
		if asked := r.asked(); !slices.Equal(asked, []string{"POST /api/v1/namespaces/r/configmaps", "POST /api/v1/namespaces/r/secrets"}) {
			t.Errorf("asked %q, want both copies be made again", asked)
		}
		c.copies.collectUnneeded(t.Context(), true)
		if err := c.cache.configMaps.GetStore().Delete(m); err != nil {
			t.Fatal(err)
		}
		if err := c.cache.secrets.GetStore().Delete(s); err != nil {
			t.Fatal(err)
		}
		if c.copies.collectUnneeded(t.Context(), true); len(c.copies.written.all) > 0 {
			t.Errorf("what the watch has shown is remembered: %v", c.copies.written.all)
		}
	})
}

// TestTokensAreRenewedWhatever checks that failed token requests of some pods do not stop the renewal for others, and that pods that
// would no longer be accepted still get new tokens.
func TestTokensAreRenewedWhatever(t *testing.T) {
	const pods = 20
	refused := func(*corev1.Pod) error { return errdefs.InvalidInputf("no pod is taken any more") }
	for name, change := range map[string]func(*Cluster, *refusing){
		"home has the pod no more":       func(_ *Cluster, r *refusing) { r.all = errdefs.NotFoundf("the pod has ended") },
		"home takes its account no more": func(_ *Cluster, r *refusing) { r.all = errdefs.InvalidInputf("no such audience") },
		"it would be placed no more": func(c *Cluster, _ *refusing) {
			c.config.Place = func(p *corev1.Pod) (Placement, error) { return Placement{}, refused(p) }
		},
		"it would be taken no more": func(c *Cluster, _ *refusing) { c.config.Adjust = func(p, _ *corev1.Pod) error { return refused(p) } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, tokens := &remote{}, &refusing{}
				c := inMemory(t, r, pods, nil)
				c.UsePodTokens(tokens)
				for i := range r.pods.Items {
					if err := c.cache.pods.GetStore().Add(&r.pods.Items[i]); err != nil {
						t.Fatal(err)
					}
				}
				change(c, tokens)
				c.refreshNeeds(t.Context())
				if got := tokens.taken(); got == 0 || tokens.all == nil && got != pods {
					t.Errorf("%d tokens were given", got)
				}
			})
		})
	}
}

// refusing issues tokens only for the pod web-19, if all is set.
type refusing struct {
	counted
	all error
}

// Token implements node.PodTokens.
func (r *refusing) Token(ctx context.Context, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	if r.all != nil && pod.Name != "web-19" {
		return node.PodToken{}, r.all
	}
	return r.counted.Token(ctx, pod, source)
}

// TestPodThatHomeHasNoMoreGetsNoToken checks that a remote pod gets no token after its home pod was replaced by another pod of the
// same name.
func TestPodThatHomeHasNoMoreGetsNoToken(t *testing.T) {
	r, tokens := &remote{}, &counted{}
	c := inMemory(t, r, 1, nil)
	c.UsePodTokens(tokens)
	if err := c.cache.pods.GetStore().Add(&r.pods.Items[0]); err != nil {
		t.Fatal(err)
	}
	next := withToken(0)
	next.UID = "next"
	atHome(t, c, next)
	if c.refreshNeeds(t.Context()); tokens.taken() > 0 {
		t.Error("a pod that home has no more got a token")
	}
}
