// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// TestWhatAPodLeavesIsRemoved removes pods. A copy that only such a pod names is removed at once. A copy that no
// pod ever named is removed when all copies are checked.
func TestWhatAPodLeavesIsRemoved(t *testing.T) {
	r := &remote{}
	c := inMemory(t, r, 0, nil)
	for _, name := range []string{"only", "shared", "unnamed"} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "r", Name: name, UID: types.UID(name), ResourceVersion: "7"}}
		if err := c.cache.secrets.GetStore().Add(s); err != nil {
			t.Fatal(err)
		}
	}
	pod := func(name string, secrets ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "r", Name: name}}
		for _, s := range secrets {
			p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
		}
		return p
	}
	if err := c.cache.pods.GetStore().Add(pod("stays", "shared")); err != nil {
		t.Fatal(err)
	}
	removed := func(everything bool) []string {
		r.asked()
		c.copies.collectUnneeded(t.Context(), everything)
		return r.asked()
	}
	c.copies.releaseObjects(pod("goes", "only", "shared", "never-seen"))
	if got, want := removed(false), []string{"DELETE /api/v1/namespaces/r/secrets/only"}; !slices.Equal(got, want) {
		t.Errorf("after a pod has gone: asked %q, want %q", got, want)
	}
	if err := c.cache.secrets.GetStore().Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "r", Name: "only"}}); err != nil {
		t.Fatal(err)
	}
	if got := removed(false); len(got) > 0 {
		t.Errorf("when no more pods have gone: asked %q", got)
	}
	if got, want := removed(true), []string{"DELETE /api/v1/namespaces/r/secrets/unnamed"}; !slices.Equal(got, want) {
		t.Errorf("of everything: asked %q, want %q", got, want)
	}
}

// TestNobodyWaitsForASlowRemoval lets the removal of a copy hang. Meanwhile pods go, others are reported, and
// new ones are created, except for a pod that needs that copy.
func TestNobodyWaitsForASlowRemoval(t *testing.T) {
	r := &remote{hangs: make(chan struct{})}
	c := inMemory(t, r, 2, nil)
	slow := object{KindSecret, "r", "slow"}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: slow.namespace, Name: slow.name, UID: "s", ResourceVersion: "7"}}
	if err := c.cache.secrets.GetStore().Add(s); err != nil {
		t.Fatal(err)
	}
	told, collected, held := make(chan string, 10), make(chan struct{}), make(chan struct{})
	c.NotifyPods(t.Context(), func(pod *corev1.Pod) { told <- pod.Name })
	go func() {
		defer close(collected)
		c.copies.collectUnneeded(t.Context(), true)
	}()
	patience, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for asked := 0; asked == 0; asked = len(r.asked()) {
		runtime.Gosched()
	}
	go func() { // like an event of the watch
		c.recordGone(&r.pods.Items[0])
		c.recordSeen(&r.pods.Items[1])
		c.copies.holdObjects([]object{{KindSecret, "r", "other"}})()
		told <- "held"
		defer close(held)
		c.copies.holdObjects([]object{{KindSecret, "r", "other"}, slow})()
	}()
	for _, want := range []string{"web-1", "held"} {
		select {
		case got := <-told:
			if got != want {
				t.Errorf("told of %s, want %s", got, want)
			}
		case <-patience.Done():
			t.Errorf("while a copy is removed nothing is told: want %s", want)
		}
	}
	select {
	case <-held:
		t.Error("a pod is made that needs what is being removed")
	default:
	}
	close(r.hangs)
	<-collected
	<-held
	if len(c.copies.removing) > 0 {
		t.Errorf("%v is still being removed", c.copies.removing)
	}
}

// configMaps are the ConfigMaps of home. They count the reads.
type configMaps struct {
	noObjects
	read int
}

// ConfigMap implements node.PodObjects.
func (m *configMaps) ConfigMap(_ context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	m.read++
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}, nil
}

// TestRefreshDoesTheSameOnce checks many pods that name one ConfigMap. A pod is translated again only if it has changed, and the
// ConfigMap is read once.
func TestRefreshDoesTheSameOnce(t *testing.T) {
	const pods = 20
	r, from, translated := &remote{}, &configMaps{}, 0
	c := inMemory(t, r, pods, nil)
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	c.config.Pods = corev1listers.NewPodLister(index)
	c.UsePodTokens(&counted{})
	c.UsePodObjects(from)
	c.config.Annotations = func(string) bool { translated++; return true }
	change := func(i, version int) {
		t.Helper()
		home := withToken(i)
		home.ResourceVersion, home.Annotations = fmt.Sprint(version), map[string]string{"example.com/note": fmt.Sprint(version)}
		home.Spec.Volumes = append(home.Spec.Volumes, corev1.Volume{Name: "all", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "all"}}}}, corev1.Volume{Name: "note", VolumeSource: corev1.VolumeSource{
			DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "note", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['example.com/note']"}}}}}})
		if err := index.Add(home); err != nil {
			t.Fatal(err)
		}
		if err := c.cache.pods.GetStore().Add(&r.pods.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	refresh := func() (times, read int) {
		translated, from.read = 0, 0
		c.refreshNeeds(t.Context())
		return translated, from.read
	}
	for i := range pods {
		change(i, 1)
	}
	if times, read := refresh(); times != pods || read != 1 {
		t.Errorf("at first %d pods of %d were translated, and a ConfigMap was read %d times", times, pods, read)
	}
	if times, read := refresh(); times != 0 || read != 1 {
		t.Errorf("when nothing has changed %d pods were translated, and a ConfigMap was read %d times", times, read)
	}
	change(3, 2)
	if times, _ := refresh(); times != 1 {
		t.Errorf("when a pod has changed %d were translated", times)
	}
	name := c.config.Home.filesName(withToken(3))
	var files *corev1.Secret
	for o, w := range c.copies.written.all {
		if o.name == name {
			files = w.after.(*corev1.Secret)
		}
	}
	if files == nil || string(files.Data["note.0.0"]) != "2" {
		t.Errorf("the files of the pod that has changed are %v", files)
	}
	other := r.pods.Items[5].DeepCopy()
	other.UID = "made again"
	if err := c.cache.pods.GetStore().Update(other); err != nil {
		t.Fatal(err)
	}
	if times, _ := refresh(); times != 1 {
		t.Errorf("when a pod was made again over there %d were translated", times)
	}
}
