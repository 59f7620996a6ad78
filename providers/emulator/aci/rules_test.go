// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// groupWith returns a request for a group of one container, with parts replaced.
func groupWith(replaced ...string) string {
	return strings.NewReplacer(replaced...).Replace(`{"location": "x", ZONES "properties": {"osType": "Linux", SPEC "containers": [CONTAINER "name": "c", "properties": {"image": "i", MORE
		"resources": {"requests": {"cpu": 1, "memoryInGB": 1.5} LIMITS}}}]}}`)
}

var date = regexp.MustCompile(`^20\d\d-\d\d-\d\d$`)

var blank = regexp.MustCompile(`\b(ZONES|SPEC|MORE|LIMITS)\b`)

// TestPublishedC15EveryRuleOfACIIsKept checks that the emulator refuses each group that breaks a rule, with the
// code of ACI, and no other group.
func TestPublishedC15EveryRuleOfACIIsKept(t *testing.T) {
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	const login = `{"server": "r.example", "username": "u", "password": "p"}`
	const subnet = `"subnetIds": [{"id": "s"}],`
	port := func(spec string) []string {
		return []string{"MORE", `"ports": [{"port": 80, "protocol": "TCP"}],`, "SPEC", `"ipAddress": {` + spec + `},`}
	}
	const public = `"type": "Public", "ports": [{"port": 80, "protocol": "TCP"}]`
	broken := [][]string{ // in the order of Rules
		{"LIMITS", `, "limits": {"cpu": 1.5, "memoryInGB": 1.5}`},
		{"LIMITS", `, "limits": {"cpu": 0.5}`},
		{`"cpu": 1,`, `"cpu": 0,`},
		{"1.5", "1.25"},
		{"SPEC", `"imageRegistryCredentials": [` + login + `, {"server": "other.example", "username": "u"}],`},
		{"SPEC", `"imageRegistryCredentials": [{"server": "r.example:5000", "username": "u"}],`},
		{"SPEC", `"imageRegistryCredentials": [` + login + `,` + login + `],`, `}}}]}}`, `}}}, {"name": "d", "properties": {"image": "i", "resources": {"requests": {"cpu": 1, "memoryInGB": 1}}}}]}}`},
		{"SPEC", `"imageRegistryCredentials": [{"server": "r.example"}],`},
		{"SPEC", `"imageRegistryCredentials": [{"server": "r.example", "username": "u", "identity": "/i"}],`},
		{"SPEC", `"imageRegistryCredentials": [{"server": "r.example", "identity": "/i"}],`},
		{"MORE", `"environmentVariables": [{"name": "a.b", "value": "x"}],`},
		{"MORE", `"environmentVariables": [{"name": "A"}],`},
		{"SPEC", `"volumes": [{"name": "v", "secret": {"a": ""}}],`},
		{"SPEC", `"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}],`},
		{"SPEC", `"volumes": [` + many(21, `{"name": "v%d", "emptyDir": {}}`) + `],`},
		{"SPEC", `"initContainers": [` + many(60, `{"name": "i%d", "properties": {"image": "i"}}`) + `],`},
		{"MORE", `"volumeMounts": [{"name": "v", "mountPath": "/a:b"}],`, "SPEC", `"volumes": [{"name": "v", "emptyDir": {}}],`},
		{"SPEC", `"ipAddress": {"type": "Public", "ports": []},`},
		{"SPEC", `"ipAddress": {` + public + `},`},
		{"MORE", `"ports": [` + many(6, `{"port": 8%d, "protocol": "TCP"}`) + `],`, "SPEC", `"ipAddress": {"type": "Public", "ports": [` + many(6, `{"port": 8%d, "protocol": "TCP"}`) + `]},`},
		{"MORE", `"ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "TCP"}],`},
		port(strings.Replace(public, "Public", "Private", 1)),
		append(port(public), "CONTAINER", "{", `"osType": "Linux",`, `"osType": "Linux", `+subnet),
		port(public + `, "dnsNameLabel": "node"`),
		{"MORE", `"livenessProbe": {"periodSeconds": 1},`},
		{"SPEC", `"priority": "Spot", ` + subnet},
		{"SPEC", `"priority": "Spot", "sku": "Dedicated",`},
		{"SPEC", `"priority": "Spot",`, "ZONES", `"zones": ["1"],`},
		{"SPEC", `"extensions": [{"name": "kube-proxy", "properties": {"extensionType": "kube-proxy", "settings": {}}}],`},
		{`"cpu": 1,`, `"cpu": 32,`},
	}
	rules := Rules()
	if len(broken) != len(rules) {
		t.Fatalf("there are %d rules, and %d groups that break one", len(rules), len(broken))
	}
	find := func(text string) (code string, status int) {
		var g Request
		text = strings.Replace(blank.ReplaceAllString(text, ""), "CONTAINER", "{", 1)
		if problems := checkModel("ContainerGroup", []byte(text)); len(problems) > 0 && !slices.ContainsFunc(problems, func(p string) bool { return strings.HasSuffix(p, "is missing") }) {
			t.Fatalf("%s: %q", text, problems)
		}
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i, rule := range rules {
			if rule.Broken(&g) != "" {
				return fmt.Sprint(i, " ", rule.Code), rule.Status
			}
		}
		return "", 0
	}
	if code, _ := find(groupWith()); code != "" {
		t.Errorf("a group that breaks no rule breaks %s", code)
	}
	for i, rule := range rules {
		if rule.Source == "" || !date.MatchString(rule.Date) || rule.Status < http.StatusBadRequest || rule.Code == "" {
			t.Errorf("rule %d lacks a source, a date or an answer: %+v", i, rule)
		}
		if code, status := find(groupWith(broken[i]...)); code != fmt.Sprint(i, " ", rule.Code) || status != rule.Status {
			t.Errorf("group %d breaks %q, want rule %d, %s", i, code, i, rule.Code)
		}
	}
	for variable, refused := range map[string]bool{
		`"value": ""`: true, `"secureValue": ""`: true, `"value": "x", "secureValue": "y"`: true, `"value": "x"`: false, `"secureValue": "x"`: false,
	} {
		code, _ := find(groupWith("MORE", `"environmentVariables": [{"name": "A", `+variable+`}],`))
		if strings.HasSuffix(code, " InvalidEnvironmentVariable") != refused {
			t.Errorf("a variable with %s: got %q", variable, code)
		}
	}
}

// TestAnswersHaveSources checks that each answer has a source, and that no rule contradicts an answer.
func TestAnswersHaveSources(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range Rules() {
		if rule.Status == http.StatusBadRequest {
			seen[rule.Code] = true
		}
	}
	for _, answer := range Answers() {
		if answer.Source == "" || !date.MatchString(answer.Date) || answer.Status < http.StatusBadRequest || answer.Code == "" || answer.Fate == "" || seen[answer.Code] {
			t.Errorf("the answer %+v lacks something, or is there twice", answer)
		}
		seen[answer.Code] = true
	}
}
