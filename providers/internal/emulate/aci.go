// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
)

// aciService returns Azure Container Instances, with its token service and a new service principal.
func aciService(_ context.Context, b behind) service {
	const subscription, subnet = "00000000-0000-0000-0000-000000000001", "/resourceGroups/pods/providers/Microsoft.Network/virtualNetworks/net/subnets/pods"
	who := aci.Principal{Tenant: "tenant-emulated", Client: "client-emulated", Secret: rand.Text()}
	s := aci.New(b.sharedFleet(), aci.Place{Subscription: subscription, ResourceGroup: "pods", Region: "westeurope"}, who)
	s.Subnets = []string{"/subscriptions/" + subscription + subnet}
	return service{
		Handler: s, report: b.sharedFleet().Report, operation: func(r *http.Request) string { return aci.Operation(r, nil) }, made: aciMade, left: s.Left,
		groupOf: func(id string) string { return id[:strings.LastIndex(id, "-")] }, // a new group of the same name has another number
		settings: func(url, caFile string) string {
			return fmt.Sprintf(`apiVersion: aci.virtual-kubelet.io/v1alpha1
kind: ACIProviderConfiguration
subscriptionID: %[1]s
resourceGroup: pods
region: westeurope
clusterName: demo
cloud: {endpoint: %[2]q, authority: %[2]q, metrics: %[2]q, metricsAudience: %[2]q, caFile: %[3]q}
credentials: {tenantID: %[4]s, clientID: %[5]s, clientSecret: %[6]s}
network: {vnet: net, subnet: pods}
stats: true
capacity: %[7]s
`, subscription, url, caFile, who.Tenant, who.Client, who.Secret, b.capacity)
		},
		// The limits of the resource manager for a subscription and a principal. The limit of ACI itself, 300
		// creates an hour, is not applied here.
		rates: []emulator.Rate{
			{Operations: []string{"List", "Get", "Logs"}, Burst: 250, PerSecond: 25},
			{Operations: []string{"Create", "Exec"}, Burst: 200, PerSecond: 10},
			{Operations: []string{"Delete"}, Burst: 200, PerSecond: 10},
		},
		throttled: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"error":{"code":"SubscriptionRequestsThrottled","message":"Number of requests for subscription and operation exceeded the backend storage limit."}}`))
		},
	}
}

// aciMade returns the group of a create request, and the name of its pod.
func aciMade(r *http.Request, body, _ []byte) (id, pod string) {
	if r.Method != http.MethodPut {
		return "", ""
	}
	var in struct{ Tags map[string]string }
	_ = json.Unmarshal(body, &in) // a refused request has no name
	return path.Base(r.URL.Path), cmp.Or(in.Tags[identity.TagName], in.Tags["PodName"], "?")
}
