// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// TestForeignSecretsCostNothing: a node with a pod that reads one Secret does not hold the Secrets of another
// namespace in memory. The test is not parallel, because it measures the heap.
func TestForeignSecretsCostNothing(t *testing.T) {
	const (
		secrets = 10_000
		allowed = 4 << 20
	)
	// The test has a cluster of its own, because all these objects go away with the cluster.
	w := newWorldIn(t, testapi.New(t, testapi.Options{NoControllerManager: true, NoScheduler: true}))
	foreign := w.api.Namespace(t)
	var lister corev1listers.SecretLister
	w.provider = func(in nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		lister = in.Secrets
		return w.newProvider(in)
	}
	w.createSources()
	w.start()
	w.startPod(w.podFromSources("web"))

	before := heap()
	w.forEach(numbered("foreign", secrets), func(name string) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"key": strings.Repeat("x", 1000)}}
		_, err := w.client().CoreV1().Secrets(foreign).Create(w.Context(), secret, metav1.CreateOptions{})
		return err
	})
	w.startPod(w.podFromSources("after"))
	grown := heap() - before
	t.Logf("the heap has grown from %d kB by %d kB", before>>10, grown>>10)
	if grown > allowed {
		t.Errorf("the heap has grown by %d kB with %d foreign Secrets, want at most %d kB", grown>>10, secrets, allowed>>10)
	}
	if wide := w.requests.those(listsAllSecrets); len(wide) > 0 {
		t.Errorf("the node reads Secrets that no pod of it names:\n%s", lines(wide))
	}

	// A provider that lists all Secrets gets all of them.
	found, err := lister.List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < secrets {
		t.Errorf("the lister returned %d Secrets, want at least %d", len(found), secrets)
	}
	if grown := heap() - before; grown <= allowed {
		t.Errorf("with all Secrets in it the heap has grown by %d kB only, so this test shows nothing", grown>>10)
	}
}

func listsAllSecrets(r request) bool {
	return r.method == http.MethodGet && strings.HasSuffix(r.path, "/secrets") &&
		!strings.Contains(r.query.Get("fieldSelector"), "metadata.name=")
}

// heap returns the bytes of the heap in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // for objects that finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
