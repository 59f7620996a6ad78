// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"slices"
	"strings"
	"testing"
)

func TestFieldsAreChecked(t *testing.T) {
	const good = `{"location": "x", "properties": {"osType": "Linux", "containers": [{"name": "c", "properties": {"image": "i",
		"resources": {"requests": {"cpu": 1, "memoryInGB": 1.5}}, "environmentVariables": [{"name": "A", "secureValue": "b"}]}}]}}`
	if problems := checkModel("ContainerGroup", []byte(good)); len(problems) > 0 {
		t.Errorf("what is right is refused: %q", problems)
	}
	for old, c := range map[string]struct{ now, want string }{
		`"secureValue"`:               {`"valueFrom"`, "valueFrom: is not known"},
		`"image": "i",`:               {``, "image: is missing"},
		`"osType": "Linux", `:         {``, "osType: is missing"},
		`"cpu": 1`:                    {`"cpu": "1"`, "cpu: string is not of the type Number"},
		`"location": "x"`:             {`"id": "x"`, "id: is read only"},
		`"name": "c"`:                 {`"name": 1`, "name: float64 is not of the type String"},
		`{"location": "x"`:            {`[`, "no JSON"},
		`"memoryInGB": 1.5}}`:         {`"memoryInGB": 1.5, "disk": 1}}`, "disk: is not known"},
		`{"location": "x", "proper`:   {`{"location": "x", "identity": {"type": "all"}, "proper`, "want one of"},
		`[{"name": "c", "properties"`: {`[{"workingDir": "/", "name": "c", "properties"`, "workingDir: is not known"},
	} {
		problems := checkModel("ContainerGroup", []byte(strings.Replace(good, old, c.now, 1)))
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s in the place of %s: got %q, want %q", c.now, old, problems, c.want)
		}
	}
}
