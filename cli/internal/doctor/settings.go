// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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
	if e.Kubeconfig != "" {
		switch _, err := os.Stat(e.Kubeconfig); {
		case err == nil:
			e.load(e.Kubeconfig)
			return
		case !errors.Is(err, fs.ErrNotExist):
			e.found("let the user of this process read it", "kubeconfig: %v", err)
			return
		}
	}
	if e.BootstrapKubeconfig != "" {
		e.bootstrap = true
		e.load(e.BootstrapKubeconfig)
		return
	}
	config, err := rest.InClusterConfig()
	switch {
	case err == nil:
		e.rest = config
	case errors.Is(err, rest.ErrNotInCluster):
		e.found("name an existing file with --kubeconfig, or run in a pod with a service account",
			"there is no kubeconfig %s, and this is no pod of a cluster", e.Kubeconfig)
	default:
		e.found("mount the token of a service account: automountServiceAccountToken: true, or a projected volume at /var/run/secrets/kubernetes.io/serviceaccount",
			"there is no kubeconfig %s, and the service account of this pod cannot be used: %v", e.Kubeconfig, err)
	}
}

func (e *exam) load(path string) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		e.found("write it anew, or check it with kubectl --kubeconfig "+path+" version", "kubeconfig %s cannot be used: %v", path, err)
		return
	}
	e.rest = config
}
