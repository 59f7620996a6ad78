// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// tools is a pod to work in. The server on port 9000 greets a caller who sends a name, repeats the rest, and
// writes a file when the caller has gone. The containers named after protocols read typed input.
const tools = `
apiVersion: v1
kind: Pod
metadata: {name: tools}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: busybox:1.36
      command: ["sh", "-c", "nc -ll -p 9000 -e sh -c 'read name; echo hello $name; cat; touch /tmp/left-$name' & exec sleep 1000"]
      readinessProbe: {exec: {command: ["sh", "-c", "netstat -lnt | grep -q :9000"]}, periodSeconds: 1}
    - {name: other, image: "busybox:1.36", command: ["sleep", "1000"]}
    - {name: websocket, image: "busybox:1.36", command: ["sh"], stdin: true, tty: true}
    - {name: spdy, image: "busybox:1.36", command: ["sh"], stdin: true, tty: true}
`

// TestKubectl uses containers as people do, through the API server, over both protocols of kubectl.
func TestKubectl(t *testing.T) {
	w := newWorld(t)
	w.apply(tools)
	w.awaitPod("tools", "is ready", ready)
	streams := map[string]func(user){
		"exec": user.exec, "exec in a terminal": user.execTerminal, "cp": user.cp, "attach": user.attach,
		"attach in a terminal": user.attachTerminal, "port-forward": user.portForward, "debug": user.debug,
	}
	t.Run("over", func(t *testing.T) {
		for protocol := range protocols {
			for name, test := range streams {
				t.Run(protocol+" "+name, func(t *testing.T) {
					t.Parallel()
					test(user{w, protocol}.as(t))
				})
			}
		}
		t.Run("logs", func(t *testing.T) {
			t.Parallel()
			user{w, "websocket"}.as(t).logs()
		})
	})
	for _, s := range w.pod("tools").Status.ContainerStatuses {
		if s.RestartCount != 0 {
			t.Errorf("container %s restarted under what was done with it: %+v", s.Name, s.LastTerminationState)
		}
	}
	t.Run("metrics", func(t *testing.T) { user{w, "websocket"}.as(t).metrics() })
}

func (u user) exec() {
	for command, want := range map[string]struct {
		out, errs string
		code      int
	}{
		"true":                        {},
		"echo out; echo err >&2":      {out: "out\n", errs: "err\n"},
		"echo out; exit 7":            {out: "out\n", errs: "command terminated with exit code 7\n", code: 7},
		"kill -9 $$":                  {errs: "command terminated with exit code 137\n", code: 137},
		"test -t 0 || echo no":        {out: "no\n"},
		"yes | head -c 3000000|wc -c": {out: "3000000\n"},
	} {
		s := u.open("exec", "tools", "-c", "main", "--", "sh", "-c", command)
		if got := s.ends(want.code); got != want.out || s.errs.String() != want.errs {
			u.Errorf("exec of %s wrote %q and %q, want %q and %q", command, got, s.errs, want.out, want.errs)
		}
	}
	s := u.open("exec", "-i", "tools", "-c", "other", "--", "sh", "-c", "cat; echo end of input")
	s.say("typed\n")
	s.hears("typed\n")
	_ = s.in.Close() // the end of the input
	if got := s.ends(0); got != "typed\nend of input\n" {
		u.Errorf("exec -i of cat wrote %q", got)
	}
	s = u.open("exec", "tools", "-c", "main", "--", "/no/such/program")
	s.ends(1)
	if !strings.Contains(s.errs.String(), "/no/such/program") {
		u.Errorf("exec of no program says %q, want its name in it", s.errs)
	}
}

func (u user) execTerminal() {
	s := u.openTerminal("exec", "-it", "tools", "-c", "main", "--", "sh")
	s.hears("# ")
	s.say("test -t 0 && test -t 1 && echo terminal$((40+2))\r")
	s.hears("terminal42\r\n")
	s.awaitSize("30 100")
	s.resize(40, 120)
	s.awaitSize("40 120")
	s.say("sh -c 'echo sleeping$((1+1)); exec sleep 1000'\r") // its output shows that it is in the foreground already
	s.hears("sleeping2\r\n")
	s.say("\x03")
	s.say("echo back$((1+1)); exit 3\r")
	s.hears("back2\r\n")
	s.ends(3)
}

// cp copies a file and a folder into a container and out again.
func (u user) cp() {
	dir := u.TempDir()
	content := make([]byte, 2_000_000)
	_, _ = rand.Read(content) // it never fails
	there, back := filepath.Join(dir, "there"), filepath.Join(dir, "back")
	if err := os.MkdirAll(filepath.Join(there, "sub"), 0o700); err != nil {
		u.Fatal(err)
	}
	for name, data := range map[string][]byte{"large": content, "sub/small": []byte("small"), "empty": nil} {
		if err := os.WriteFile(filepath.Join(there, name), data, 0o640); err != nil {
			u.Fatal(err)
		}
	}
	inPod := "tools:/tmp/" + u.protocol
	u.open("cp", there, inPod, "-c", "other").ends(0)
	u.open("cp", inPod, back, "-c", "other").ends(0)
	u.open("cp", inPod+"/large", filepath.Join(dir, "alone"), "-c", "other").ends(0)
	for name, want := range map[string][]byte{"back/large": content, "alone": content, "back/sub/small": []byte("small"), "back/empty": nil} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			u.Errorf("%s came back with %d bytes that are not the %d that went there (%v)", name, len(got), len(want), err)
		}
	}
	if got := u.do("exec", "tools", "-c", "other", "--", "stat", "-c", "%a", "/tmp/"+u.protocol+"/sub/small"); got != "640" {
		u.Errorf("the file in the container has the mode %s, want 640", got)
	}
}

// attach talks to a container whose input ends when the attached client ends it.
func (u user) attach() {
	name := "once-" + u.protocol
	u.apply(strings.ReplaceAll(`
apiVersion: v1
kind: Pod
metadata: {name: POD}
spec:
  nodeName: NODE
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "busybox:1.36", stdin: true, stdinOnce: true, command: ["sh", "-c", "while read line; do echo got $line; done; echo end >&2; exit 4"]}]
`, "POD", name))
	u.awaitPod(name, "is ready", ready)
	s := u.open("attach", "-i", name)
	for _, line := range []string{"one", "two"} {
		s.say(line + "\n")
		s.hears("got " + line + "\n")
	}
	_ = s.in.Close() // the end of the input
	s.ends(0)
	if !strings.Contains(s.errs.String(), "end\n") {
		u.Errorf("attach wrote %q as errors, want the end of the container in it", s.errs)
	}
	p := u.awaitPod(name, "has failed", phase(corev1.PodFailed))
	if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 4 {
		u.Errorf("the container whose input ended: %+v, want exit code 4", p.Status.ContainerStatuses[0].State)
	}
}

// attachTerminal kills a kubectl that is attached to a container, and attaches again. The shell in the container keeps running.
func (u user) attachTerminal() {
	s := u.openTerminal("attach", "-it", "tools", "-c", u.protocol)
	s.say("echo first$((1+1)); remembered=7\r")
	s.hears("first2\r\n")
	s.awaitSize("30 100")
	_ = s.cmd.Process.Kill()
	<-s.ended //nolint:errcheck // how it ended does not matter
	s = u.openTerminal("attach", "-it", "tools", "-c", u.protocol)
	s.say("echo again$remembered\r")
	s.hears("again7\r\n")
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> 9000\n`)

func (u user) portForward() {
	s := u.open("port-forward", "--address=127.0.0.1", "tools", ":9000")
	s.hears("-> 9000\n")
	address := forwarding.FindStringSubmatch(s.out.String())
	if address == nil {
		u.Fatalf("port-forward wrote %q", s.out)
	}
	callers := map[string]net.Conn{}
	for _, name := range []string{"a-" + u.protocol, "b-" + u.protocol} { // two at a time
		conn, err := (&net.Dialer{}).DialContext(u.Context(), "tcp", address[1])
		if err != nil {
			u.Fatal(err)
		}
		defer conn.Close()
		callers[name] = conn
		u.echo(conn, name+"\n", "hello "+name+"\n")
	}
	for _, conn := range callers {
		block := strings.Repeat("0123456789abcdef", 1<<16)
		u.echo(conn, block, block)
	}
	s.interrupt()
	s.ends(0)
	for name, conn := range callers {
		if n, err := io.Copy(io.Discard, conn); n != 0 {
			u.Errorf("after the end of port-forward came %d bytes (%v)", n, err)
		}
		u.await("the server knows that caller "+name+" is gone", func() (bool, string) {
			got := u.do("exec", "tools", "-c", "main", "--", "ls", "/tmp")
			return strings.Contains(got, "left-"+name), got
		})
	}
}

// echo sends a text and waits for the expected answer.
func (u user) echo(conn net.Conn, say, want string) {
	u.Helper()
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, say)
		wrote <- err
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		u.Fatalf("through port-forward came %.40q (%v), want %.40q", got, err, want)
	}
	if err := <-wrote; err != nil {
		u.Fatal(err)
	}
}

// debug adds a container to a running pod, and sees the processes of another container.
func (u user) debug() {
	name := "debug-" + u.protocol
	s := u.openTerminal("debug", "-it", "tools", "--image=busybox:1.36", "--target=main", "--container="+name, "--",
		"sh", "-c", `read line; echo "$line, process 1 is $(tr '\0' ' ' </proc/1/cmdline)"; exit 5`)
	s.hears("try pressing enter")
	s.say("typed\r")
	s.hears("typed, process 1 is sleep 1000")
	<-s.ended //nolint:errcheck // how it ended does not matter
	u.awaitPod("tools", "has the end of "+name, func(p *corev1.Pod) bool {
		for _, c := range p.Status.EphemeralContainerStatuses {
			if c.Name == name && c.State.Terminated != nil {
				return c.State.Terminated.ExitCode == 5
			}
		}
		return false
	})
}
