// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestPodsOfOneNameAtOnce checks that only one of many simultaneous pods of the same name is created.
func TestPodsOfOneNameAtOnce(t *testing.T) {
	s := newServer(t, nil)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: aPod(fmt.Sprintf("u%d", i))})
			if code != http.StatusOK && code != http.StatusConflict {
				t.Error(code, body)
			}
		})
	}
	all.Wait()
	if list, err := s.pods.provider.GetPods(t.Context()); err != nil || len(list) != 1 || len(s.pods.all) != 1 {
		t.Errorf("the provider has %d pods, the plugin %d, %v, want 1", len(list), len(s.pods.all), err)
	}
}
