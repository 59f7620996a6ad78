// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestCreatesDoNotKeepStatesAway: every create hurries the next answer; many in a row must not put it off for ever.
func TestCreatesDoNotKeepStatesAway(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == wire.PathStatus {
			asked.Add(1)
			_ = json.NewEncoder(w).Encode([]wire.PodStatus{{UID: string(goldenPod().UID), JobID: "17"}})
		}
	}))
	defer server.Close()
	c, err := newClient(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	tr := newTracker(c, time.Minute)
	tr.notify = func(*corev1.Pod) {}
	go tr.run(t.Context())
	tr.add(goldenPod(), wire.PodStatus{}, false)
	eventually(t, "three answers while creates go on", func() bool {
		tr.hurry()
		return asked.Load() >= 3
	})
}

// TestLostPodIsSeen: the server tells from its memory of a pod that its plugin has lost. It is told to forget one pod after the other, and
// what answers lack for a while is lost; one answer is not enough, and without pods nothing is asked.
func TestLostPodIsSeen(t *testing.T) { synctest.Test(t, lostPodIsSeen) }

func lostPodIsSeen(t *testing.T) {
	const pods = 5
	var mu sync.Mutex
	remembered, plugin, requests := map[string]bool{}, map[string]bool{}, 0
	server := direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests++
		switch r.URL.Path {
		case wire.PathUpdateCache:
			uid, _ := io.ReadAll(r.Body)
			delete(remembered, string(uid))
		case wire.PathStatus:
			maps.Copy(remembered, plugin)
			out := []wire.PodStatus{}
			for uid := range remembered {
				out = append(out, wire.PodStatus{UID: uid, JobID: "17"})
			}
			_ = json.NewEncoder(w).Encode(out)
		}
	})}
	c, err := newClient(Config{URL: "http://site.test"})
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = server
	tr := newTracker(c, time.Minute)
	poll := func() {
		if err := tr.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	poll()
	if requests != 0 {
		t.Errorf("%d requests without a pod", requests)
	}
	for i := range pods {
		pod := goldenPod()
		pod.UID, pod.Name = types.UID(fmt.Sprintf("u%d", i)), fmt.Sprintf("pod-%d", i)
		plugin[string(pod.UID)] = true
		tr.add(pod, wire.PodStatus{}, false)
	}
	poll()
	if requests != 2 {
		t.Errorf("%d requests for the states of %d pods, want 2", requests, pods)
	}
	mu.Lock()
	delete(plugin, "u3")
	mu.Unlock()
	polls, most := 0, pods+int(missingFor/time.Second)+1
	for tr.get("u3") != nil {
		if polls++; polls > most {
			t.Fatal("the server remembers the pod for ever")
		}
		poll()
		time.Sleep(time.Second)
	}
	if polls < missingAfter || len(tr.all()) != pods-1 {
		t.Errorf("lost after %d answers, and %d pods are left, want %d", polls, len(tr.all()), pods-1)
	}
}

// TestCostOfAPod: two requests to begin, and one to end.
func TestCostOfAPod(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == wire.PathCreate {
			_ = json.NewEncoder(w).Encode(wire.Created{JobID: "17"})
			return
		}
		_, _ = io.WriteString(w, "[]")
	}))
	defer server.Close()
	h := remotetest.NewHome(t, "vk-0")
	p, err := newProvider(h.Input(), Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	p.UsePodObjects(h)
	line := through(p)
	pod := h.Pod("default", "web", stays())
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got, want := line.all(), []string{"GET /status", "POST /create", "DELETE /delete"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

// TestAuthorityFromOutside: pods get the authority of the configuration in the place of the cluster's own, and other objects as they are.
func TestAuthorityFromOutside(t *testing.T) {
	h := remotetest.NewHome(t, "vk-0")
	h.Put("default", kubeRootCA, "inside")
	h.Put("default", "other", "inside")
	pod := h.Pod("default", "web", stays())
	for name, want := range map[string]string{kubeRootCA: "outside", "other": ""} {
		got, err := withCA{h, "outside"}.ConfigMap(t.Context(), pod, name)
		if err != nil || got.Data["ca.crt"] != want {
			t.Errorf("%s: %v, %v, want %q", name, got, err, want)
		}
	}
}
