// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func (u user) exec() {
	if got := u.kubectl("exec", "web", "--", "echo", "hello", "you"); got != "hello you\n" {
		u.t.Errorf("exec echo wrote %q", got)
	}
	if code, _, _ := u.fails("exec", "web", "--", "sh", "-c", "exit 7"); code != 7 {
		u.t.Errorf("exec of exit 7: got exit code %d", code)
	}
	code, stdout, stderr := u.fails("exec", "web", "--", "cat", "/nowhere")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "/nowhere") {
		u.t.Errorf("exec cat of no file: got exit code %d, output %q, error output %q", code, stdout, stderr)
	}
	if got := u.typing("typed\nmore\n", "exec", "-i", "web", "--", "cat"); got != "typed\nmore\n" {
		u.t.Errorf("exec -i cat wrote %q", got)
	}
	if code, _, stderr := u.fails("exec", "absent", "--", "true"); code != 1 || !strings.Contains(stderr, "not found") {
		u.t.Errorf("exec in no pod: got exit code %d and %q", code, stderr)
	}
}

// terminal runs exec with a terminal on both sides.
func (u user) terminal() {
	script, err := exec.LookPath("script")
	if err != nil {
		u.t.Skip("this test needs the program script, of util-linux, which makes a terminal")
	}
	inner := u.command([]string{"exec", "-it", "web", "--", "echo", "hello", "you"})
	// The shell of script knows programs by name only, and the kubectl on the path may be of any version. A
	// kubectl before 1.34 reads from a WebSocket before it has made its streams, and drops the data ("Unknown
	// stream id").
	program := filepath.Join(u.t.TempDir(), "kubectl")
	if err := os.Symlink(inner.Path, program); err != nil {
		u.t.Fatal(err)
	}
	quoted := []string{program}
	for _, arg := range inner.Args[1:] {
		quoted = append(quoted, "'"+arg+"'")
	}
	cmd := exec.Command(script, "--quiet", "--return", "--command", strings.Join(quoted, " "), os.DevNull)
	cmd.Env = append(inner.Env, "TERM=dumb", "SHELL=/bin/sh")
	cmd.Stdin = strings.NewReader("")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "hello you\r\n") { // kubectl may add that it cannot type any more
		u.t.Errorf("exec -it echo in a terminal wrote %q (%v)", out, err)
	}
}

// debug adds containers to a copy of the pod, and to the node.
func (u user) debug() {
	if got := u.typing("typed\n", "debug", "web", "-i", "--quiet", "--image=busybox", "--container=debugger",
		"--same-node", "--copy-to=copy-"+u.suffix()); !strings.HasSuffix(got, "typed\n") {
		u.t.Errorf("debug of a copy wrote %q, want what was typed at its end", got)
	}
	if got := u.typing("typed\n", "debug", "node/"+u.nodeName, "-i", "--quiet", "--image=busybox", "--profile=general"); !strings.HasSuffix(got, "typed\n") {
		u.t.Errorf("debug of the node wrote %q, want what was typed at its end", got)
	}
}

// suffix keeps the names of the pods of the two protocols apart.
func (u user) suffix() string {
	_, protocol, _ := strings.Cut(u.t.Name(), "over_")
	return protocol
}

func (u user) attach() {
	if got := u.typing("typed\n", "attach", "-i", "web"); !strings.HasSuffix(got, "typed\n") {
		u.t.Errorf("attach -i wrote %q, want what was typed at its end", got)
	}
	lines, end := u.reading("attach", "web")
	defer end()
	if !lines.Scan() {
		u.t.Errorf("attach wrote nothing: %v", lines.Err())
	}
}

var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) -> 80$`)

func (u user) portForward() {
	lines, end := u.reading("port-forward", "--address=127.0.0.1", "pod/web", ":80")
	defer end()
	if !lines.Scan() {
		u.t.Fatalf("port-forward wrote nothing: %v", lines.Err())
	}
	found := forwarding.FindStringSubmatch(lines.Text())
	if found == nil {
		u.t.Fatalf("port-forward wrote %q", lines.Text())
	}
	// Each request is a connection of its own through the same port-forward.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	for range 3 {
		resp, err := client.Get("http://" + found[1])
		if err != nil {
			u.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := "pod " + u.key("web") + " answers on port 80\n"; err != nil || string(body) != want {
			u.t.Errorf("the pod answered %q (%v), want %q", body, err, want)
		}
	}
}

// copyBytes sends bytes of every value to a command, which sends them back.
func (u user) copyBytes() {
	content := make([]byte, 300_000)
	if _, err := rand.Read(content); err != nil {
		u.t.Fatal(err)
	}
	if got := u.typing(string(content), "exec", "-i", "web", "--", "cat"); got != string(content) {
		u.t.Errorf("%d bytes came back from the pod that differ from the %d that went there", len(got), len(content))
	}
}

// raw reads the paths of a node that are not streams.
func (u user) raw() {
	for path, want := range map[string]string{
		"/pods":             `"name":"web"`,
		"/runningpods/":     `"name":"web"`,
		"/stats/summary":    u.nodeName,
		"/metrics/resource": "container_cpu_usage_seconds_total",
		"/metrics":          "kubelet_running_pods",
		"/healthz":          "ok",
	} {
		got := u.kubectl("get", "--raw", "/api/v1/nodes/"+u.nodeName+"/proxy"+path)
		if !strings.Contains(strings.ReplaceAll(got, `": "`, `":"`), want) {
			u.t.Errorf("%s: got %.500q, want %q in it", path, got, want)
		}
	}
}
