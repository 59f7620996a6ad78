// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator/ecs"
)

// fargateService is Amazon ECS with the services beside it, with a key that it makes.
func fargateService(fleet *emulator.Fleet) service {
	const account, group = "123456789012", "/virtual-kubelet/demo"
	id, secret := "AKIA"+rand.Text()[:16], rand.Text()
	s := ecs.New(context.Background(), ecs.Config{
		Fleet: fleet, Keys: map[string]ecs.Key{id: {Secret: secret}}, Account: account, LogGroups: []string{group}, Lag: late,
		Subnets: []string{"subnet-emulated"}, SecurityGroups: []string{"sg-emulated"}, Roles: []string{"execution", "pods"},
	})
	return service{Handler: s, report: s.Report, settings: func(url, caFile string) string {
		keys := filepath.Join(filepath.Dir(caFile), "credentials")
		if err := os.WriteFile(keys, fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", id, secret), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "emulate:", err) // the provider misses it
		}
		return fmt.Sprintf(`apiVersion: fargate.virtual-kubelet.io/v1alpha1
kind: FargateProviderConfiguration
region: eu-central-1
endpoint: %[1]s
caFile: %[2]s
credentialsFile: %[3]s
clusterID: demo
subnets: [subnet-emulated]
securityGroups: [sg-emulated]
executionRole: arn:aws:iam::%[4]s:role/execution
execRole: arn:aws:iam::%[4]s:role/pods
logGroup: %[5]s
queue: %[1]s/%[4]s/tasks
filesImage: demo
reachable: true
capacity: {cpu: 20, memory: 100Gi, pods: 20}
`, url, caFile, keys, account, group)
	}}
}
