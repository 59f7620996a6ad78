// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCallsHaveTheirFilesInTheirDirectory(t *testing.T) {
	r := Runtime{Program: "/usr/sbin/runc", Root: "/run/x"}
	for _, tt := range []struct {
		call Call
		want string
	}{
		{r.Create("/d", "c1", "/b", true), "create --bundle /b --pid-file /d/pid --console-socket /d/s c1"},
		{r.Start("/d", "c1"), "start c1"},
		{r.Exec("/d", "c1", false), "exec --detach --process /d/process.json --pid-file /d/pid c1"},
		{r.Delete("/d", "c1"), "delete --force c1"},
	} {
		want := "/usr/sbin/runc --root /run/x --log /d/log --log-format json " + tt.want
		if got := strings.Join(tt.call.Argv, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAFailureIsTheErrorsOfTheLog(t *testing.T) {
	c := Runtime{Program: "/usr/sbin/runc"}.Start(t.TempDir(), "c1")
	for _, test := range []struct{ name, log, want string }{
		{"no log", "", "runc: it ended with code 1"},
		{"one a line", `{"level":"error","msg":"the mount failed"}
not JSON
{"level":"fatal","msg":"create failed\n"}
{"level":"warning","msg":"a warning"}
`, "runc: create failed: the mount failed"},
		// gVisor's file server and its call write their messages like this.
		{"without a newline", `{"msg":"setting up FS: EBUSY","level":"error"}{"msg":"reading mounts: EOF","level":"error"}`, "runc: reading mounts: EOF: setting up FS: EBUSY"},
		{"cut", `{"msg":"setting up FS","level":"error"}{"msg":"readi`, "runc: setting up FS"},
	} {
		if test.log != "" {
			if err := os.WriteFile(filepath.Join(c.Dir, logFile), []byte(test.log), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.Failed("it ended with code 1").Error(); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestPIDOfACall(t *testing.T) {
	c := Runtime{Program: "runc"}.Start(t.TempDir(), "c1")
	for content, want := range map[string]int{"12345": 12345, "": 0, "-1": 0, "x": 0} {
		if err := os.WriteFile(filepath.Join(c.Dir, pidFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.PID(); got != want && err == nil || (err == nil) != (want != 0) {
			t.Errorf("%q: got %d, %v, want %d", content, got, err, want)
		}
	}
}

// TestACommandIsTheContainersProcessButForItsArguments checks that a command has the user and the rights of its
// container.
func TestACommandIsTheContainersProcessButForItsArguments(t *testing.T) {
	dir := t.TempDir()
	config := `{"process": {"args": ["main"], "cwd": "/w", "user": {"uid": 4294967295}, "capabilities": {"bounding": ["CAP_KILL"]}, "noNewPrivileges": true}}`
	if err := Process(dir, []byte(config), []string{"a", "b c"}, true); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, processFile))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Args            []string
		Terminal        bool
		Cwd             string
		User            struct{ UID uint32 }
		Capabilities    struct{ Bounding []string }
		NoNewPrivileges bool
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Args, []string{"a", "b c"}) || !got.Terminal || got.Cwd != "/w" || got.User.UID != 4294967295 ||
		!slices.Equal(got.Capabilities.Bounding, []string{"CAP_KILL"}) || !got.NoNewPrivileges {
		t.Errorf("got %s", data)
	}
}
