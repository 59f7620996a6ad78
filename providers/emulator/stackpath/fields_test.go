// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"strings"
	"testing"
)

// TestCheck checks a correct create, and the same create with one mistake at a time.
func TestCheck(t *testing.T) {
	const good = `{"workload":{"name":"a","slug":"a","metadata":{"labels":{"k":"v"}},"spec":{"containers":{"c":{"image":"i","ports":{"http":{"port":80}},"imagePullPolicy":"ALWAYS",` +
		`"securityContext":{"runAsUser":"7"},"command":["x"]}}}}}`
	if err := Check([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, is, path string }{
		{`"name":"a"`, `"title":"a"`, "workload.title"},
		{`"name":"a"`, `"id":"a"`, "workload.id"}, // read only
		{`"k":"v"`, `"k":1`, "labels.k"},
		{`"port":80`, `"port":"80"`, "ports.http.port"},
		{`"port":80`, `"port":80.5`, "ports.http.port"},
		{`"runAsUser":"7"`, `"runAsUser":7`, "runAsUser"}, // 64-bit numbers are strings
		{`"ALWAYS"`, `"Always"`, "imagePullPolicy"},
		{`["x"]`, `"x"`, "command"},
		{`["x"]`, `[1]`, "command[0]"},
		{`"containers":{"c"`, `"containers":{"emptyDir":{},"c"`, ""}, // a container of that name
		{`"image":"i"`, `"image":"i","restartPolicy":"Never"`, "containers.c.restartPolicy"},
		{good, `{`, "no JSON"},
	} {
		err := Check([]byte(strings.Replace(good, c.old, c.is, 1)))
		if c.path == "" && err != nil || c.path != "" && (err == nil || !strings.Contains(err.Error(), c.path)) {
			t.Errorf("%s: got %v, want %q", c.is, err, c.path)
		}
	}
}
