// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
)

// eciService returns Alibaba Cloud ECI, with a new key.
func eciService(_ context.Context, b behind) service {
	id, secret := "LTAI"+rand.Text(), rand.Text()
	s := &eci.Server{
		Gate:   eci.Gate{Keys: map[string]eci.Key{id: {Secret: secret}}},
		Region: "cn-hangzhou", VSwitches: []string{"vsw-emulated"}, SecurityGroups: []string{"sg-emulated"}, Fleet: b.sharedFleet(),
	}
	return service{
		Handler: s, report: s.Report, operation: func(r *http.Request) string { return eci.Operation(r, nil) }, made: eciMade, left: s.Left,
		settings: func(url, caFile string) string {
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
capacity: %s
`, url, caFile, id, secret, b.capacity)
		},
		// The limits of the service: 1,000 creates and deletes, 2,000 reads and 500 other requests in any
		// minute.
		rates: []emulator.Rate{
			{Operations: []string{"CreateContainerGroup"}, Burst: 100, PerSecond: 15},
			{Operations: []string{"DeleteContainerGroup"}, Burst: 100, PerSecond: 15},
			{Operations: []string{"DescribeContainerGroups"}, Burst: 200, PerSecond: 30},
			{Operations: []string{"DescribeContainerGroupStatus"}, Burst: 200, PerSecond: 30},
			{Operations: []string{"RestartContainerGroup"}, Burst: 50, PerSecond: 7.5},
			{Operations: []string{"DescribeContainerLog"}, Burst: 50, PerSecond: 7.5},
			{Operations: []string{"ExecContainerCommand"}, Burst: 50, PerSecond: 7.5},
		},
		throttled: eci.Refuse(http.StatusServiceUnavailable, "Throttling.User", "Request was denied due to user flow control."),
	}
}

// eciMade returns the group in an answer, and the name of its pod.
func eciMade(r *http.Request, body, answer []byte) (id, pod string) {
	if r.Header.Get("X-Acs-Action") != "CreateContainerGroup" {
		return "", ""
	}
	form, _ := url.ParseQuery(string(body)) // the service has refused an invalid form
	for name, values := range r.URL.Query() {
		form[name] = append(form[name], values...)
	}
	for i := 1; form.Has("Tag." + strconv.Itoa(i) + ".Key"); i++ {
		if form.Get("Tag."+strconv.Itoa(i)+".Key") == identity.TagName {
			pod = form.Get("Tag." + strconv.Itoa(i) + ".Value")
		}
	}
	var out struct{ ContainerGroupID string }
	_ = json.Unmarshal(answer, &out) // an error has no such field
	return out.ContainerGroupID, pod
}
