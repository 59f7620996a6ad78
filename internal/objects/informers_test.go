// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
)

var (
	_ podenv.Objects = (*Store)(nil)
	_ podenv.Objects = (*Listers)(nil)
)

func TestOnlyListStartsTheClusterWideWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := configMapNamed("one", "2")
		foreign.Namespace = "elsewhere"
		h := newHarness(t, configMapNamed("one", "1"), foreign, secretNamed("one", "s")).run()
		defer h.end()
		h.Track(podUsing("a", "one"))
		configMaps, secrets := h.ConfigMaps().Lister(), h.Secrets().Lister()
		for i, informer := range []any{h.ConfigMaps(), h.Secrets()} {
			if s, ok := informer.(interface{ Store() *Store }); !ok || s.Store() != h.Store {
				t.Errorf("informer %d does not show its store", i)
			}
		}
		if cm, err := configMaps.ConfigMaps("ns").Get("one"); err != nil || cm.Data["k"] != "1" {
			t.Errorf("ConfigMap: %v, %v", cm, err)
		}
		if s, err := secrets.Secrets("ns").Get("one"); err != nil || string(s.Data["k"]) != "s" {
			t.Errorf("Secret: %v, %v", s, err)
		}
		if _, err := secrets.Secrets("ns").Get("none"); !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want not found", err)
		}
		for _, action := range h.api.Actions() {
			if action.GetNamespace() == "" {
				t.Errorf("%s of all %s before anybody lists", action.GetVerb(), action.GetResource().Resource)
			}
		}
		h.requests()
		for range 2 {
			if all, err := configMaps.List(labels.Everything()); err != nil || len(all) != 2 {
				t.Errorf("list: %v, %v; want two", all, err)
			}
			if some, err := configMaps.ConfigMaps("elsewhere").List(labels.Everything()); err != nil || len(some) != 1 || some[0].Data["k"] != "2" {
				t.Errorf("list of a namespace: %v, %v; want one", some, err)
			}
		}
		if got := h.requests(); got["list"] != 1 || got["watch"] != 1 {
			t.Errorf("requests %v, want one list and one watch for all questions", got)
		}
		if all, err := secrets.List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("list: %v, %v; want one", all, err)
		}
		if some, err := secrets.Secrets("ns").List(labels.Everything()); err != nil || len(some) != 1 {
			t.Errorf("list of a namespace: %v, %v; want one", some, err)
		}
		if h.Secrets().Informer() != h.Secrets().Informer() || !h.Secrets().Informer().HasSynced() || !h.ConfigMaps().Informer().HasSynced() {
			t.Error("Informer does not give the one informer that runs")
		}
	})
}

func TestListBeforeAndAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, configMapNamed("one", "1"))
		if _, err := h.ConfigMaps().Lister().List(labels.Everything()); err == nil {
			t.Error("a list before Run is no error")
		}
		h.run()
		if all, err := h.ConfigMaps().Lister().List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("list: %v, %v; want one", all, err)
		}
		h.end()
		lists := []func() error{
			func() error { _, err := h.ConfigMaps().Lister().List(labels.Everything()); return err },
			func() error { _, err := h.ConfigMaps().Lister().ConfigMaps("ns").List(labels.Everything()); return err },
			func() error { _, err := h.Secrets().Lister().List(labels.Everything()); return err },
			func() error { _, err := h.Secrets().Lister().Secrets("ns").List(labels.Everything()); return err },
		}
		for i, list := range lists {
			if err := list(); err == nil {
				t.Errorf("list %d after Run is no error", i)
			}
		}
	})
}

func TestFromListers(t *testing.T) {
	indexer := func(o any) cache.Indexer {
		i := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := i.Add(o); err != nil {
			t.Fatal(err)
		}
		return i
	}
	l := FromListers(corev1listers.NewConfigMapLister(indexer(configMapNamed("one", "1"))), corev1listers.NewSecretLister(indexer(secretNamed("one", "s"))))
	if cm, err := l.ConfigMap(t.Context(), "ns", "one"); err != nil || cm.Data["k"] != "1" {
		t.Errorf("ConfigMap: %v, %v", cm, err)
	}
	if s, err := l.Secret(t.Context(), "ns", "one"); err != nil || string(s.Data["k"]) != "s" {
		t.Errorf("Secret: %v, %v", s, err)
	}
	if _, err := l.ConfigMap(t.Context(), "elsewhere", "one"); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}
