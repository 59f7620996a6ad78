// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestLostPodIsSeen checks a pod that its plugin has lost while the server still remembers it. The provider
// tells the server to forget one pod after the other. A pod that answers lack for a while is lost; one answer is
// not enough. Without pods there are no requests.
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
		case wire.PathCreate:
			var in wire.Create
			_ = json.NewDecoder(r.Body).Decode(&in)
			plugin[string(in.Pod.UID)] = true
			_ = json.NewEncoder(w).Encode(wire.Created{JobID: "17"})
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
	h := remotetest.NewHome(t, "vk-0")
	p, err := openProvider(h.Input(), Config{URL: "http://site.test"})
	if err != nil {
		t.Fatal(err)
	}
	p.client.http.Transport = server
	h.Run(p)
	asked := func() int {
		mu.Lock()
		defer mu.Unlock()
		return requests
	}
	time.Sleep(time.Minute + DefaultStatusInterval/4) // no answer is due before the one that the creates trigger
	if n := asked(); n != 0 {
		t.Errorf("%d requests without a pod", n)
	}
	for i := range pods {
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), stays())
		pod.UID = types.UID(fmt.Sprintf("u%d", i))
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(soon + DefaultStatusInterval/4)
	if n := asked(); n != pods+2 {
		t.Errorf("%d requests to make %d pods and for their states, want %d", n, pods, pods+2)
	}
	mu.Lock()
	delete(plugin, "u3")
	mu.Unlock()
	begin := time.Now()
	for p.get("u3") != nil {
		if time.Since(begin) > missingFor+(pods+1)*DefaultStatusInterval {
			t.Fatal("the server remembers the pod for ever")
		}
		p.answer()
	}
	if took := time.Since(begin); took < missingFor || len(p.Cache().All()) != pods-1 {
		t.Errorf("lost after %s, and %d pods are left, want %d", took, len(p.Cache().All()), pods-1)
	}
}

// TestCostOfAPod checks that a pod costs one request at its begin and one at its end.
func TestCostOfAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := remotetest.NewHome(t, "vk-0")
		p, err := openProvider(h.Input(), Config{URL: "http://site.test"})
		if err != nil {
			t.Fatal(err)
		}
		p.client.http.Transport = direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == wire.PathCreate {
				_ = json.NewEncoder(w).Encode(wire.Created{JobID: "17"})
				return
			}
			_, _ = io.WriteString(w, "[]")
		})}
		line := through(p)
		h.Run(p)
		pod := h.Pod("default", "web", stays())
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if got, want := line.all(), []string{"POST /create", "DELETE /delete"}; !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q", got, want)
		}
	})
}

// TestAuthorityFromOutside checks that pods get the authority of the configuration instead of the cluster's, and
// all other objects unchanged.
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
