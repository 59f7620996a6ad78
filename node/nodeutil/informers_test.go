// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestARefusedListIsTalkedOfOnce: a refused list causes one warning, however often it is retried.
func TestARefusedListIsTalkedOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := &lineLogger{}
		ctx, cancel := context.WithTimeout(lines.into(t.Context()), 10*time.Minute)
		defer cancel()
		client := fake.NewClientset()
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", nil)
		})
		newPodInformer(client, "n", 0).Informer().RunWithContext(ctx)
		if got := lines.text(); strings.Count(got, "warn ") != 1 || strings.Count(got, "debug ") < 2 || !strings.Contains(got, "is forbidden") {
			t.Errorf("log: got %s", got)
		}
	})
}
