// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"reflect"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"
)

// TestNewerClientsAskAViewToo: a view has the methods that only newer versions of client-go call. This file is
// also built with older versions, so it cannot call the methods by name.
func TestNewerClientsAskAViewToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := NewPods(newPodAPI().source(), []string{"a"}, 0)
		informer := pods.View("a").Informer()
		handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
		if err != nil {
			t.Fatal(err)
		}
		for name, asked := range map[string]any{"informer": informer, "handler": handle} {
			method := reflect.ValueOf(asked).MethodByName("HasSyncedChecker")
			if !method.IsValid() {
				t.Skip("this client-go has no HasSyncedChecker")
			}
			done := method.Call(nil)[0].Interface().(interface{ Done() <-chan struct{} }).Done()
			select {
			case <-done:
				t.Errorf("%s: synced before the first list", name)
			default:
			}
			t.Cleanup(func() {
				select {
				case <-done:
				default:
					t.Errorf("%s: not synced after the first list", name)
				}
			})
		}
		ctx, stop := withCancel(t)
		ended := make(chan struct{})
		go func() { defer close(ended); _ = pods.Run(ctx) }()
		synctest.Wait()
		stop()
		<-ended
	})
}
