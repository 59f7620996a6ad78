// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestPublishedC23EveryRuleOfECSIsKept checks that the emulator refuses each task definition that breaks a rule,
// and no other.
func TestPublishedC23EveryRuleOfECSIsKept(t *testing.T) {
	const good = `{"family": "f", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512", "executionRoleArn": "r",
		"containerDefinitions": [{"name": "c", "image": "i", "essential": true}, {"name": "d", "image": "i", "essential": true}]}`
	c := func(more string) [2]string { return [2]string{`"name": "c",`, `"name": "c", ` + more + `,`} }
	const awslogs = `"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g", "awslogs-region": "r"}}`
	broken := [][][2]string{ // in the order of the rules
		{{"awsvpc", "bridge"}},
		{{`"cpu": "256", `, ""}},
		{{`"512"`, `"4096"`}},
		{{`{"name": "d", "image": "i", "essential": true}`, strings.Repeat(`{"name": "d", "image": "i"},`, 9) + `{"name": "e", "image": "i"}`}},
		{c(`"command": ["` + strings.Repeat("x", 65536) + `"]`)},
		{{`"cpu": "256"`, `"cpu": "256", "ephemeralStorage": {"sizeInGiB": 20}`}},
		{{`"executionRoleArn": "r",`, ""}, c(awslogs)},
		{{`"executionRoleArn": "r",`, ""}, c(`"secrets": [{"name": "A", "valueFrom": "arn"}]`)},
		{c(`"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g"}}`)},
		{{`"name": "c"`, `"name": "c.d"`}},
		{c(`"memory": 1024`)},
		{c(`"cpu": 257`)},
		{c(`"dependsOn": [{"containerName": "d", "condition": "SUCCESS"}]`)},
		{c(`"portMappings": [{"containerPort": 3000, "protocol": "tcp"}, {"containerPort": 3000, "protocol": "tcp"}]`)},
		{c(`"portMappings": [{"containerPort": 3000, "hostPort": 80, "protocol": "tcp"}]`)},
		{c(`"secrets": [{"name": "A", "valueFrom": "arn"}], "environment": [{"name": "A", "value": "x"}]`)},
		{c(`"workingDirectory": ""`)},
		{c(`"healthCheck": {"command": ["CMD"], "interval": 5, "timeout": 61, "retries": 3}`)},
		{c(`"mountPoints": [{"sourceVolume": "v", "containerPath": "/v"}]`)},
		{c(`"linuxParameters": {"capabilities": {"add": ["NET_ADMIN"]}}`)},
		{c(`"stopTimeout": 1`)},
		{{`"cpu": "256"`, `"cpu": "256", "volumes": [{"name": "a", "configuredAtLaunch": true}, {"name": "b", "configuredAtLaunch": true}]`}},
		{{`"cpu": "256"`, `"cpu": "256", "volumes": [{"name": "a", "efsVolumeConfiguration": {"fileSystemId": "fs-1", "rootDirectory": "/a", "transitEncryption": "ENABLED",
			"authorizationConfig": {"accessPointId": "fsap-1"}}}]`}},
	}
	if len(broken) != len(rules) {
		t.Fatalf("there are %d rules, and %d definitions that break one", len(rules), len(broken))
	}
	first := func(text string) int {
		d := &definition{size: len(text)}
		if err := json.Unmarshal([]byte(text), d); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i, r := range rules {
			if r.broken(d) != "" {
				if err := d.checkRules(); err == nil || !strings.Contains(err.Error(), r.broken(d)) {
					t.Errorf("rule %d: the service answers %v", i, err)
				}
				return i
			}
		}
		return -1
	}
	if i := first(good); i >= 0 {
		t.Errorf("a definition that breaks no rule breaks rule %d", i)
	}
	date := regexp.MustCompile(`^20\d\d-\d\d-\d\d$`)
	for i, changes := range broken {
		text := good
		for _, change := range changes {
			text = strings.Replace(text, change[0], change[1], 1)
		}
		if got := first(text); got != i {
			t.Errorf("definition %d breaks rule %d", i, got)
		}
		if rules[i].source == "" || !date.MatchString(rules[i].date) {
			t.Errorf("rule %d lacks a source or a date", i)
		}
	}
}
