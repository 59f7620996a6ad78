// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator/aci"
)

// aciService is Azure Container Instances, with a service principal that it makes.
func aciService(fleet *emulator.Fleet) service {
	who := aci.Principal{Tenant: "emulated", Client: "virtual-kubelet", Secret: rand.Text()}
	s := aci.New(fleet, aci.Place{Subscription: "emulated", ResourceGroup: "pods", Region: "westeurope"}, who)
	s.Subnets = []string{"/subscriptions/emulated/resourceGroups/pods/providers/Microsoft.Network/virtualNetworks/net/subnets/pods"}
	return service{Handler: s, report: fleet.Report, settings: func(url, caFile string) string {
		return fmt.Sprintf(`apiVersion: aci.virtual-kubelet.io/v1alpha1
kind: ACIProviderConfiguration
subscriptionID: emulated
resourceGroup: pods
region: westeurope
clusterName: demo
cloud: {endpoint: %[1]q, authority: %[1]q, metrics: %[1]q, metricsAudience: %[1]q, caFile: %[2]q}
credentials: {tenantID: %[3]s, clientID: %[4]s, clientSecret: %[5]s}
network: {vnet: net, subnet: pods}
stats: true
capacity: {cpu: 20, memory: 100Gi, pods: 20}
`, url, caFile, who.Tenant, who.Client, who.Secret)
	}}
}
