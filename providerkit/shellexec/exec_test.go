// SPDX-License-Identifier: Apache-2.0

package shellexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	utilexec "k8s.io/utils/exec"
)

// shells lists the programs that serve as sh in images, with their arguments. The shell of alpine is busybox
// with another C library: SHELLEXEC_ALPINE_BUSYBOX names the program from an image.
var shells = map[string][]string{
	"dash":    {"dash"},
	"bash":    {"bash"},
	"posix":   {"bash", "--posix"},
	"busybox": {"busybox", "sh"},
	"ash":     {"busybox", "ash"},
	"alpine":  {os.Getenv("SHELLEXEC_ALPINE_BUSYBOX"), "sh"},
}

// TestMain adds mvdan.cc/sh, the shell in the image of the demo's first pod.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "shellexec-")
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "sh")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../providers/process/demo/shell"
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the shell of the first image: %v: %s", err, out)
	}
	shells["mvdan"] = []string{path} // its tests are skipped if it was not built
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// inShells runs a test in each shell of the machine.
func inShells(t *testing.T, test func(t *testing.T, shell []string)) {
	for name, shell := range shells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell[0])
			if err != nil {
				t.Skipf("this machine does not have the shell %s: %v", name, err)
			}
			test(t, append([]string{path}, shell[1:]...))
		})
	}
}

// session is a command in a shell of this machine, with the streams of a service's session.
type session struct {
	options Options
	in      *string
	after   string // output of the command after which it gets its input
	out     bytes.Buffer
}

// waiting is an input that begins on demand.
type waiting struct {
	begin <-chan struct{}
	io.Reader
}

// Read implements io.Reader.
func (w waiting) Read(data []byte) (int, error) {
	<-w.begin
	return w.Reader.Read(data)
}

// run runs the command, cuts its output into small pieces, and returns the exit code. If the options ask for a
// terminal, the session's two files are a terminal, and otherwise pipes.
func (s *session) run(t *testing.T, shell []string, dir string) (code int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.options.Stdout, s.options.Input = &s.out, s.in != nil
	e := New(s.options)
	words := []string{}
	if s.options.By != Typing {
		words = e.Command()[1:]
	}
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:len(shell):len(shell)], words...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PS1=$ ", "HOME="+dir, "ENV=", "HISTFILE=")
	var stdin io.WriteCloser
	var stdout io.Reader
	if s.options.TTY || s.options.Terminal {
		terminal := onTerminal(t, cmd)
		stdin, stdout = terminal, terminal
	} else {
		in, errIn := cmd.StdinPipe()
		out, errOut := cmd.StdoutPipe()
		if err := errors.Join(errIn, errOut); err != nil {
			t.Fatal(err)
		}
		var other bytes.Buffer
		cmd.Stderr = &other
		defer func() {
			if other.Len() > 0 {
				t.Errorf("the other output has %q", &other)
			}
		}()
		stdin, stdout = in, out
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sent, shown := make(chan struct{}), make(chan struct{})
	show := sync.OnceFunc(func() { close(shown) })
	defer show()
	go func() {
		defer close(sent)
		var in io.Reader
		if s.in != nil {
			in = waiting{shown, strings.NewReader(*s.in)}
		}
		_ = e.Send(ctx, in, func(data []byte) error { // a command may end before its input
			_, err := stdin.Write(data)
			return err
		})
	}()
	piece := make([]byte, 3)
	for {
		n, err := stdout.Read(piece)
		if _, failed := e.Write(piece[:n]); failed != nil {
			t.Fatalf("%v, after %q", failed, &s.out)
		}
		if strings.Contains(s.out.String(), s.after) {
			show()
		}
		ended, failed := e.Ended()
		if ended {
			show()
			cancel()
			stdin.Close() // as the end of a session does; the shell may read no more
			<-sent
			_ = cmd.Wait() // the shell may have been ended before it did
			var exit utilexec.ExitError
			if errors.As(failed, &exit) {
				return exit.ExitStatus()
			}
			return 0
		}
		if err != nil {
			t.Fatalf("the session ended before the command: %v; it printed %q, and %q is kept", err, &s.out, e.held)
		}
	}
}

// everyByte returns all bytes, and lines that look like the end of the input.
func everyByte() string {
	var all strings.Builder
	for range 20 {
		for b := range 256 {
			all.WriteByte(byte(b))
		}
		all.WriteString("\n.\n")
	}
	return all.String()
}

// TestShellTellsCodeAndEndOfInput runs commands with pipes, by the two scripts that work with pipes, and on
// terminals that the caller did not request.
func TestShellTellsCodeAndEndOfInput(t *testing.T) {
	inShells(t, func(t *testing.T, shell []string) {
		for way, o := range map[string]Options{
			"words": {By: Words}, "reading": {By: Reading}, "words on a terminal": {By: Words, Terminal: true}, "typing": {By: Typing, Terminal: true},
		} {
			for name, c := range map[string]struct {
				command []string
				in      *string
				out     string
				code    int
			}{
				"words":             {[]string{"printf", "%s|", "a b", "it's", `"`, "$HOME", "`x`", `\n`, "two\nlines", "", "*", "\t!%s"}, nil, "a b|it's|\"|$HOME|`x`|\\n|two\nlines||*|\t!%s|", 0},
				"a code":            {[]string{"sh", "-c", "echo to err >&2; exit 3"}, nil, "to err\n", 3},
				"no end of a line":  {[]string{"printf", "a b"}, nil, "a b", 0},
				"no program":        {[]string{"/nowhere/program"}, nil, "", 127},
				"input that is not": {[]string{"cat"}, nil, "", 0},
				"every byte":        {[]string{"cat"}, new(everyByte()), everyByte(), 0},
				"input of no bytes": {[]string{"cat"}, new(""), "", 0},
				"a dot":             {[]string{"cat"}, new("."), ".", 0},
				"reads a part":      {[]string{"head", "-c", "2"}, new("abcd"), "ab", 0},
				"reads and fails":   {[]string{"sh", "-c", "cat; exit 4"}, new("x\r\n"), "x\r\n", 4},
				"ends before input": {[]string{"sh", "-c", "exit 5"}, new(strings.Repeat("much", 50_000)), "", 5},
				"long input":        {[]string{"wc", "-c"}, new(strings.Repeat("all of this\n", 3000)), "36000\n", 0},
				"a long word":       {[]string{"printf", "%s", strings.Repeat("long ", 5000)}, nil, strings.Repeat("long ", 5000), 0},
			} {
				t.Run(way+"/"+name, func(t *testing.T) {
					s := session{options: o, in: c.in}
					s.options.Command = c.command
					code := s.run(t, shell, t.TempDir())
					if got := s.out.String(); got != c.out && c.code != 127 || code != c.code {
						t.Errorf("got %.300q and code %d, want %.300q and %d", got, code, c.out, c.code)
					}
				})
			}
		}
	})
}

// TestCommandEndsBeforeItsInput: a session ends with its command, without waiting for the caller's input.
func TestCommandEndsBeforeItsInput(t *testing.T) {
	inShells(t, func(t *testing.T, shell []string) {
		for way, o := range map[string]Options{"reading": {By: Reading}, "words on a terminal": {By: Words, Terminal: true}, "typing": {By: Typing, Terminal: true}} {
			t.Run(way, func(t *testing.T) {
				s := session{options: o, in: new("too late"), after: "what it does not print"}
				s.options.Command = []string{"sh", "-c", "exit 5"}
				if code := s.run(t, shell, t.TempDir()); code != 5 {
					t.Errorf("got %d", code)
				}
			})
		}
	})
}

// TestShellOnTerminalOfCaller: a terminal that the caller requested has the caller's size, its keys work, and
// its modes are the same as before the script was typed.
func TestShellOnTerminalOfCaller(t *testing.T) {
	inShells(t, func(t *testing.T, shell []string) {
		for way, o := range map[string]Options{"words": {By: Words}, "typing": {By: Typing}} {
			for name, c := range map[string]struct {
				command []string
				in      string
				out     string
				code    int
			}{
				"size":         {[]string{"sh", "-c", "stty size; exit 6"}, "", "50 132\r\n", 6},
				"end of input": {[]string{"sh", "-c", "stty -echo; echo ready; cat; exit 7"}, "text\n", "ready\r\ntext\r\n", 7},
				"interrupt":    {[]string{"sh", "-c", "stty -echo; trap 'echo trapped; exit 8' INT; echo ready; cat; exit 9"}, "\x03", "ready\r\ntrapped\r\n", 8},
			} {
				t.Run(way+"/"+name, func(t *testing.T) {
					if name == "interrupt" && strings.Contains(t.Name(), "/mvdan/") {
						t.Skip("mvdan.cc/sh knows no signals")
					}
					s := session{options: o, in: &c.in, after: c.out[:min(len(c.out), len("ready"))]}
					s.options.Command, s.options.TTY, s.options.Rows, s.options.Columns = c.command, true, 50, 132
					code := s.run(t, shell, t.TempDir())
					if got := s.out.String(); got != c.out || code != c.code {
						t.Errorf("got %q and code %d, want %q and %d", got, code, c.out, c.code)
					}
				})
			}
		}
	})
}

// TestOutputIsPassedOnInPieces cuts the output of a session at every place.
func TestOutputIsPassedOnInPieces(t *testing.T) {
	for _, c := range []struct {
		name, begin, text, want string
		o                       Options
	}{
		{"a mark without its byte", "begun\n", "MARK 3\n\nMARK\nend", "MARK 3\n\nMARK\nend", Options{}},
		{"a part of the mark", "begun\n", "\x1eMARKED 3\n\x1e\x1eMAR", "\x1eMARKED 3\n\x1e\x1eMAR", Options{}},
		{"the mark of no code", "begun\n", "a\x1eMARK x\nb", "a\x1eMARK x\nb", Options{}},
		{"a raw terminal", "raw\n", "a\r\nb\r\n", "a\r\nb\r\n", Options{Terminal: true}},
		{"a cooked terminal", "cooked\r\n", "a\r\nb\rc\r\n", "a\nb\rc\n", Options{Terminal: true}},
		{"a terminal of the caller", "begun\r\n", "a\r\nb", "a\r\nb", Options{TTY: true}},
	} {
		all := "prompt \x1eMARK " + c.begin + c.text + "\x1eMARK 12\r\nrest"
		for cut := range len(all) {
			var got bytes.Buffer
			c.o.Stdout = &got
			e := New(c.o)
			e.mark = "MARK"
			for _, part := range []string{all[:cut], all[cut:]} {
				if _, err := e.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			ended, err := e.Ended()
			if got.String() != c.want || !ended || err == nil || err.Error() != "command terminated with exit code 12" {
				t.Errorf("%s, cut at %d: got %q, %t with %v, want %q", c.name, cut, got.String(), ended, err, c.want)
			}
		}
	}
}

// TestInputOnCookedTerminalIsRefused: a cooked terminal would echo the input, so the session is refused.
func TestInputOnCookedTerminalIsRefused(t *testing.T) {
	e := New(Options{Terminal: true, Input: true})
	if _, err := e.Write([]byte("\x1e" + e.mark + " cooked\r\n")); !errors.Is(err, ErrNoTTY) {
		t.Errorf("got %v", err)
	}
}

// TestSessionWithoutShellShowsWhatItPrinted: the output of a session without a shell is shown, because it may
// give the reason.
func TestSessionWithoutShellShowsWhatItPrinted(t *testing.T) {
	var out bytes.Buffer
	e := New(Options{Stdout: &out})
	if _, err := e.Write([]byte("sh: not found\n")); err != nil {
		t.Fatal(err)
	}
	if ended, _ := e.Ended(); ended || out.Len() > 0 {
		t.Errorf("ended: %t, with %q before the end of the session", ended, &out)
	}
	if err := e.Flush(); err != nil || out.String() != "sh: not found\n" {
		t.Errorf("got %q, %v", &out, err)
	}
}

// TestSendEndsWithItsSession: Send ends with the session, although no shell is ready for the script or the
// input.
func TestSendEndsWithItsSession(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, by := range []By{Words, Reading, Typing} {
		if err := New(Options{By: by, Input: true}).Send(ctx, strings.NewReader("x"), func([]byte) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("way %d: got %v", by, err)
		}
	}
}

// TestWordsAreShort: services accept words of at most 256 characters, and the script for a terminal is one word.
func TestWordsAreShort(t *testing.T) {
	for _, o := range []Options{{By: Reading}, {By: Reading, TTY: true, Rows: 65535, Columns: 65535}} {
		for _, word := range New(o).Command() {
			if len(word) > 256 {
				t.Errorf("%s characters: %q", strconv.Itoa(len(word)), word)
			}
		}
	}
}
