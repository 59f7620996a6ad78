// SPDX-License-Identifier: Apache-2.0

// Command write writes deploy/manifests/rbac.yaml, admission.yaml and provisioner.yaml from the table in internal/rbac.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/internal/rbac"
)

func main() {
	if err := writeManifests("deploy/manifests"); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func writeManifests(dir string) error {
	role, err := rbac.YAML(rbac.Shipped, rbac.ShippedFeatures()...)
	if err != nil {
		return err
	}
	admission, err := rbac.AdmissionPolicyYAML(rbac.Shipped)
	if err != nil {
		return err
	}
	provisioner, err := rbac.ProvisionerYAML(rbac.Shipped)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"rbac.yaml": role, "admission.yaml": admission, "provisioner.yaml": provisioner} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
