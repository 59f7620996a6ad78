// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/kubeconfig"
)

func checkConfiguration(_ context.Context, e *exam) {
	for _, p := range e.Problems {
		fix := "correct the setting; docs/configuration.md says what it takes, and the command config print where it comes from"
		if p.From != "" {
			fix = "correct it where it is set: " + p.From
		}
		e.found(fix, "%v", p.Err)
	}
	e.noNames = len(validation.IsDNS1123Subdomain(e.NodeName)) > 0
	if e.Serve && e.NodeIP == "" {
		e.warn("set --node-ip to an address at which the API server reaches this machine; in a pod, its status.podIP",
			"the node has no address: --node-ip is not set, so kubectl logs and exec may not find it")
	}
}

func checkKubeconfig(_ context.Context, e *exam) {
	if e.load(e.Kubeconfig, e.KubeContext) {
		return
	}
	if e.BootstrapKubeconfig != "" {
		e.bootstrap = true
		e.loadBootstrap()
		return
	}
	config, err := rest.InClusterConfig()
	switch {
	case err == nil:
		e.rest = config
	case errors.Is(err, rest.ErrNotInCluster):
		problem, fix := NoKubeconfig(e.Kubeconfig)
		e.found(fix, "%s", problem)
	default:
		e.found("mount the token of a service account: automountServiceAccountToken: true, or a projected volume at /var/run/secrets/kubernetes.io/serviceaccount",
			"there is no kubeconfig %s, and the service account of this pod cannot be used: %v", e.Kubeconfig, err)
	}
}

// NoKubeconfig returns the problem that there is neither a kubeconfig nor the service account of a pod, and the
// fix.
func NoKubeconfig(path string) (problem, fix string) {
	return fmt.Sprintf("there is no kubeconfig %s, and this is no pod of a cluster", path),
		"name an existing file with --kubeconfig, or run in a pod with a service account"
}

// loadBootstrap reads the kubeconfig for the node's first certificate.
func (e *exam) loadBootstrap() {
	if !e.load(e.BootstrapKubeconfig, "") {
		e.found("name an existing file with --bootstrap-kubeconfig", "there is no kubeconfig %s", e.BootstrapKubeconfig)
	}
}

// load reads a kubeconfig, and reports whether there is one.
func (e *exam) load(path, context string) (exists bool) {
	config, err := kubeconfig.Load(path, context)
	switch {
	case errors.Is(err, fs.ErrPermission):
		e.found("let the user of this process read it", "kubeconfig: %v", err)
	case err != nil:
		e.found("write it anew, or check it with kubectl --kubeconfig "+path+" version", "kubeconfig %s cannot be used: %v", path, err)
	}
	e.rest = config
	return config != nil || err != nil
}
