// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func TestHooksOfProviders(t *testing.T) {
	down := errors.New("not today")
	c, err := New(Config{
		Home: testHome, REST: &rest.Config{Host: "127.0.0.1:1"}, Namespace: "r", Capacity: corev1.ResourceList{},
		Pods: corev1listers.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})),
		Adjust: func(home, remote *corev1.Pod) error {
			remote.Annotations["size"] = home.Name
			return nil
		},
		Answers: func(context.Context) error { return down },
	})
	if err != nil {
		t.Fatal(err)
	}
	home := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "u"}}
	tr, err := c.translatePod(home, nil)
	if err != nil || tr.Pod.Annotations["size"] != "web-0" || len(home.Annotations) > 0 {
		t.Errorf("the remote pod is %v (%v), that at home has %v", tr, err, home.Annotations)
	}
	c.config.Adjust = func(_, _ *corev1.Pod) error { return down }
	if _, err := c.translatePod(home, nil); !errors.Is(err, down) {
		t.Errorf("a pod that is refused: got %v", err)
	}
	if err := c.Ping(t.Context()); !errors.Is(err, down) {
		t.Errorf("Ping: got %v", err)
	}
}
