// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestEveryRuleOfRunTaskIsKept checks that the emulator refuses each request that breaks a rule, by that rule,
// and no other request.
func TestEveryRuleOfRunTaskIsKept(t *testing.T) {
	broken := []string{ // in the order of the rules
		`{"launchType": "FARGATE", "capacityProviderStrategy": [{"capacityProvider": "FARGATE_SPOT"}]}`,
		`{}`,
		`{"capacityProviderStrategy": [{"capacityProvider": "FARGATE_SPOT"}, {"capacityProvider": "FARGATE"}]}`,
		`{"launchType": "FARGATE", "group": "` + strings.Repeat("g", 256) + `"}`,
		`{"launchType": "FARGATE", "volumeConfigurations": [{"name": "a"}, {"name": "b"}]}`,
		`{"launchType": "FARGATE", "volumeConfigurations": [{"name": "a", "managedEBSVolume": {"roleArn": "r", "sizeInGiB": 1, "volumeType": "st1"}}]}`,
	}
	if len(broken) != len(taskRules) {
		t.Fatalf("there are %d rules, and %d requests that break one", len(taskRules), len(broken))
	}
	first := func(text string) int {
		var in taskRequest
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i, r := range taskRules {
			if r.broken([]string{"FARGATE_SPOT"}, &in) != "" {
				return i
			}
		}
		return -1
	}
	for _, good := range []string{
		`{"launchType": "FARGATE", "group": "` + strings.Repeat("g", 255) + `"}`, `{"capacityProviderStrategy": [{"capacityProvider": "FARGATE_SPOT"}]}`,
		`{"launchType": "FARGATE", "volumeConfigurations": [{"name": "a", "managedEBSVolume": {"roleArn": "r", "snapshotId": "snap-1"}}]}`,
	} {
		if i := first(good); i >= 0 {
			t.Errorf("%s breaks rule %d", good, i)
		}
	}
	date := regexp.MustCompile(`^20\d\d-\d\d-\d\d$`)
	for i, text := range broken {
		if got := first(text); got != i {
			t.Errorf("%s breaks rule %d, want %d", text, got, i)
		}
		if taskRules[i].source == "" || !date.MatchString(taskRules[i].date) {
			t.Errorf("rule %d lacks a source or a date", i)
		}
	}
}
