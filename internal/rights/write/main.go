// SPDX-License-Identifier: Apache-2.0

// Command write writes deploy/manifests/rbac.yaml, admission.yaml and provisioner.yaml from the table in internal/rights.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/internal/rights"
)

func main() {
	if err := run("deploy/manifests"); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	rbac, err := rights.YAML(rights.Shipped, rights.ShippedFeatures()...)
	if err != nil {
		return err
	}
	admission, err := rights.AdmissionYAML(rights.Shipped)
	if err != nil {
		return err
	}
	provisioner, err := rights.ProvisionerYAML(rights.Shipped)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"rbac.yaml": rbac, "admission.yaml": admission, "provisioner.yaml": provisioner} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
