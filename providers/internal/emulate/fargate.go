// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ecs"
)

const logGroup = "/virtual-kubelet/demo"

// fargateService returns Amazon ECS, with CloudWatch Logs and Secrets Manager, and a new key.
func fargateService(ctx context.Context, b behind) service {
	id, secret := "AKIA"+rand.Text(), rand.Text()
	s := ecs.New(ctx, ecs.Config{
		Fleet: b.sharedFleet(), Account: "123456789012", Subnets: []string{"subnet-emulated"}, SecurityGroups: []string{"sg-emulated"}, Roles: []string{"execution", "exec"}, Keys: map[string]ecs.Key{id: {Secret: secret}}, LogGroups: []string{logGroup}, Lag: late, Quick: true,
	})
	return service{
		Handler: s, report: s.Report, plain: true, made: fargateMade, left: s.Left,
		operation: func(r *http.Request) string {
			_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			return name
		},
		variables: []string{"AWS_ACCESS_KEY_ID=" + id, "AWS_SECRET_ACCESS_KEY=" + secret, "AWS_SESSION_TOKEN=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"},
		settings: func(url, _ string) string {
			return fmt.Sprintf(`apiVersion: fargate.virtual-kubelet.io/v1alpha1
kind: FargateProviderConfiguration
region: eu-central-1
endpoint: %[1]s
clusterName: demo
subnets: [subnet-emulated]
securityGroups: [sg-emulated]
executionRole: arn:aws:iam::123456789012:role/execution
execRole: arn:aws:iam::123456789012:role/exec
logGroup: %[2]s
queue: %[1]s/123456789012/tasks
filesImage: demo
reachable: true
capacity: %[3]s
`, url, logGroup, b.capacity)
		},
		// The table of buckets in the reference of the API, and for RunTask also the quota of Fargate for
		// launches on demand.
		rates: []emulator.Rate{
			{Operations: []string{"RunTask", "StopTask", "ExecuteCommand"}, Burst: 100, PerSecond: 40},
			{Operations: []string{"RunTask"}, Burst: 100, PerSecond: 20},
			{Operations: []string{"DescribeTasks", "ListTasks"}, Burst: 100, PerSecond: 20},
			{Operations: []string{"RegisterTaskDefinition", "DeregisterTaskDefinition", "DeleteTaskDefinitions"}, Burst: 20, PerSecond: 1},
			{Operations: []string{"DescribeTaskDefinition", "ListTaskDefinitionFamilies", "ListTaskDefinitions"}, Burst: 50, PerSecond: 20},
			{Operations: []string{"DescribeClusters"}, Burst: 50, PerSecond: 20},
		},
		throttled: ecs.Throttled,
	}
}

// fargateMade returns the task in an answer, and the name of its pod.
func fargateMade(r *http.Request, body, answer []byte) (id, pod string) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".RunTask") {
		return "", ""
	}
	var in struct{ Tags []struct{ Key, Value string } }
	var out struct{ Tasks []struct{ TaskArn string } }
	if json.Unmarshal(body, &in) != nil || json.Unmarshal(answer, &out) != nil || len(out.Tasks) == 0 {
		return "", ""
	}
	for _, t := range in.Tags {
		if t.Key == identity.TagName {
			pod = t.Value
		}
	}
	return out.Tasks[0].TaskArn[strings.LastIndex(out.Tasks[0].TaskArn, "/")+1:], pod
}
