// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads kubeconfig files as kubectl does.
package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Load returns the configuration of a list of files, separated as in $KUBECONFIG. The first file with a value
// counts. Load ignores files that do not exist, and returns nil if none exists. An empty context is the current
// context of the files.
func Load(list, context string) (*rest.Config, error) {
	var files []string
	for _, path := range filepath.SplitList(list) {
		switch _, err := os.Stat(path); {
		case err == nil:
			files = append(files, path)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: files}
	raw, err := rules.Load()
	if err != nil {
		return nil, err
	}
	if context != "" && raw.Contexts[context] == nil {
		return nil, fmt.Errorf("kubeconfig %s: context %q does not exist", list, context)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, context, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", list, err)
	}
	return config, nil
}
