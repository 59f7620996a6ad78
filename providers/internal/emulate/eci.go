// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator/eci"
)

// eciService is Alibaba Cloud ECI, with a key that it makes.
func eciService(fleet *emulator.Fleet) service {
	id, secret := "LTAI"+rand.Text(), rand.Text()
	s := &eci.Server{
		Gate:   eci.Gate{Keys: map[string]eci.Key{id: {Secret: secret}}},
		Region: "cn-hangzhou", VSwitches: []string{"vsw-emulated"}, SecurityGroups: []string{"sg-emulated"}, Fleet: fleet,
	}
	return service{Handler: s, report: s.Report, settings: func(url, caFile string) string {
		return fmt.Sprintf(`apiVersion: eci.virtual-kubelet.io/v1alpha1
kind: ECIProviderConfiguration
region: cn-hangzhou
endpoint: %s
caFile: %s
accessKeyID: %s
accessKeySecret: %s
clusterName: demo
vSwitchIDs: [vsw-emulated]
securityGroupID: sg-emulated
capacity: {cpu: 20, memory: 100Gi, pods: 20}
`, url, caFile, id, secret)
	}}
}
