// SPDX-License-Identifier: Apache-2.0

// Package testapi gives tests a real Kubernetes API server.
//
// [Start] returns an API server that all tests of the process share; [New] starts a private one that a test may
// stop, kill and restart. Both run the program devcluster as a child process. It ends with the test process,
// even when the test process is killed. VK_TEST_KUBECONFIG names another cluster to share instead,
// DEVCLUSTER_BIN another devcluster than bin/devcluster in this repository. Without any of them the test is
// skipped, or fails if VK_REQUIRE_TESTAPI is 1.
//
// Note: nothing cleans a shared cluster between tests. A test works in a namespace from [API.Namespace]
// and with a node name from [API.NodeName], and looks at nothing else.
package testapi

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// API is an API server and an administrator's access to it.
type API struct {
	// Config is an administrator's, without a rate limit. Copy it before changing it.
	Config *rest.Config
	// Client uses Config.
	Client kubernetes.Interface
	// KubeconfigPath is a kubeconfig file with the same access.
	KubeconfigPath string
	// CAFile holds the authority of the API server's certificate. In a cluster of this package it also signs the
	// API server's own client certificates and the certificates of nodes.
	CAFile string

	binary  string   // devcluster, empty if another cluster is used and there is no devcluster
	cluster *cluster // nil when another cluster is used
}

// shared is the API of this test process, started by its first user.
var shared struct {
	mu  sync.Mutex
	api *API
	err error
}

// Start returns the shared API server of all tests of this process.
func Start(t testing.TB) *API {
	t.Helper()
	if path := os.Getenv(kubeconfigVariable); path != "" {
		api, err := openAPI(path, t.TempDir())
		if err != nil {
			t.Fatalf("use the cluster of $%s: %v", kubeconfigVariable, err)
		}
		api.binary, _ = findBinary() // kubectl may come from elsewhere
		return api
	}
	binary := requireBinary(t)

	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.api == nil && shared.err == nil {
		shared.api, shared.err = startShared(binary)
	}
	if shared.err != nil {
		t.Fatalf("start the shared API server: %v", shared.err)
	}
	if err := shared.api.cluster.endReason(); err != nil {
		t.Fatalf("the shared API server is gone: %v", err)
	}
	return shared.api
}

// startShared starts a cluster. It deletes its data when this process ends.
func startShared(binary string) (*API, error) {
	dir, err := os.MkdirTemp(parentDir(), "vk-testapi-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	c := &cluster{binary: binary, base: filepath.Dir(dir), name: filepath.Base(dir), args: []string{"--keep=false"}}
	return c.openCluster()
}

// Options are the options of a private cluster. The zero value is a cluster like the shared one.
type Options struct {
	// APIServerArgs are further flags of kube-apiserver, such as "--max-requests-inflight=10".
	APIServerArgs []string
	// ControllerManagerArgs are further flags of kube-controller-manager.
	ControllerManagerArgs []string
	// NoControllerManager leaves out the controller manager. Then nothing makes service accounts, so
	// [API.Namespace] makes the default one itself, and nothing deletes the objects in a deleted namespace.
	NoControllerManager bool
	// NoScheduler leaves out the scheduler: pods stay unbound until the test binds them.
	NoScheduler bool
}

// privateName is the name of a private cluster. A shared cluster has a random name.
const privateName = "private"

// New starts a cluster of the test's own, and stops and deletes it at the test's end.
func New(t testing.TB, o Options) *API {
	t.Helper()
	binary := requireBinary(t)
	base, err := os.MkdirTemp(parentDir(), "vk-testapi-") //nolint:usetesting // the directory is in memory
	if err != nil {
		t.Fatalf("make directory: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Errorf("remove the data of a private API server: %v", err)
		}
	})
	c := &cluster{binary: binary, base: base, name: privateName, options: o}
	for _, arg := range o.APIServerArgs {
		c.args = append(c.args, "--apiserver-arg="+arg)
	}
	for _, arg := range o.ControllerManagerArgs {
		c.args = append(c.args, "--controller-manager-arg="+arg)
	}
	if o.NoControllerManager {
		c.args = append(c.args, "--controller-manager=false")
	}
	if o.NoScheduler {
		c.args = append(c.args, "--scheduler=false")
	}
	api, err := c.openCluster()
	if err != nil {
		t.Fatalf("start a private API server: %v", err)
	}
	t.Cleanup(c.killProcess)
	return api
}

// openAPI makes an API of a kubeconfig. It writes the authority to dir unless the authority is in a file already.
func openAPI(kubeconfig, dir string) (*API, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1 // no limit
	config.UserAgent = "testapi"
	typed := rest.CopyConfig(config) // JSON of large pods takes minutes under the race detector
	typed.ContentType, typed.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	api := &API{Config: config, Client: client, KubeconfigPath: kubeconfig, CAFile: config.CAFile}
	if api.CAFile == "" {
		api.CAFile = filepath.Join(dir, "testapi-ca.crt")
		if err := os.WriteFile(api.CAFile, config.CAData, 0o644); err != nil {
			return nil, fmt.Errorf("write certificate authority: %w", err)
		}
	}
	return api, nil
}
