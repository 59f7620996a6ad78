// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// messageProgram has a provider with a README and one without.
var messageProgram = Program{Name: "vk", Version: "v9", Commit: "abc", BuildTime: "today", GVisor: "g1", Providers: []Provider{
	{Name: "empty", New: newEmpty, Readme: "# empty: no pods at all\n\nText.\n\n## Configuration file\n\nWords.\n\n```yaml\nkind: Empty # required\n```\n\n## More\n\n```yaml\nkind: Other\n```\n"},
	{Name: "other", New: newEmpty, Readme: "# other: pods elsewhere\n\n## Configuration file\n\nNone.\n\n## More\n\n```yaml\nkind: Other\n```\n"},
	{Name: "bare", New: newEmpty},
}}

// TestWrongCommandsSayWhatToDo holds that a wrong command prints the mistake and the correct command, in the same words as for a wrong
// file.
func TestWrongCommandsSayWhatToDo(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", none)
	one := startAPIServer(t, http.NotFoundHandler())
	const certificate = "no certificate for the kubelet API: set --tls-cert-file and --tls-private-key-file; or --server-tls-bootstrap; or, " +
		"for development, --self-signed-serving-certificate; or --disable-kubelet-api to do without kubectl logs and exec\n"
	for _, tc := range []struct {
		args   string
		code   int
		stderr string // the complete output
	}{
		{"doctr", 1, "vk: unknown command \"doctr\"; did you mean vk doctor?\n"},
		{"nothing", 1, "vk: unknown command \"nothing\": see vk --help\n"},
		{"config prnt", 1, "vk: unknown command \"prnt\"; did you mean vk config print?\n"},
		{"config print x", 1, "vk: unexpected argument \"x\": vk config print takes none; see vk config print --help\n"},
		{"--porrt 1", 1, "vk: unknown flag --porrt; did you mean --port?\n"},
		{"--nothing-like-it", 1, "vk: unknown flag --nothing-like-it: see vk --help\n"},
		{"-x", 1, "vk: unknown shorthand flag: 'x' in -x: see vk --help\n"},
		{"--port abc", 1, "vk: flag --port is \"abc\", want a whole number\n"},
		{"--port", 1, "vk: flag --port has no value, want a whole number\n"},
		{"--drain-timeout 5", 1, "vk: flag --drain-timeout is \"5\", want a duration such as 1m30s\n"},
		{"--kube-api-qps many", 1, "vk: flag --kube-api-qps is \"many\", want a number\n"},
		{"--trace-tag a", 1, "vk: flag --trace-tag is \"a\", want a mapping of key=value\n"},
		{"--klog.v x", 1, "vk: flag --klog.v is \"x\", want a whole number\n"},
		{"check pods.yaml", 2, "vk: unexpected argument \"pods.yaml\": use -f: vk check -f pods.yaml\n"},
		{"check --filenam pods.yaml", 2, "vk: unknown flag --filenam; did you mean --filename?\n"},
		{"doctor now", 2, "vk: unexpected argument \"now\": vk doctor takes none; see vk doctor --help\n"},
		{"doctor --timeout 5", 2, "vk: flag --timeout is \"5\", want a duration such as 1m30s\n"},
		{"contract now", 2, "vk: unexpected argument \"now\": vk contract takes none; see vk contract --help\n"},
		{"version now", 1, "vk: unexpected argument \"now\": vk version takes none; see vk version --help\n"},
		{"version -o xml", 1, "vk: --output \"xml\": want text, json or yaml\n"},
		{"providers empty other", 1, "vk: unexpected argument \"other\": name one provider\n"},
		{"providers emty", 1, "vk: no such provider \"emty\": there are: bare, empty, other; did you mean empty?\n"},
		{"--port 1", 1, "vk: no provider chosen: set --provider to one of: bare, empty, other\n" + certificate},
		{"--provider empty", 1, "vk: " + certificate},
		{"--provider empty --disable-kubelet-api", 1, "vk: there is no kubeconfig " + none + ", and this is no pod of a cluster: name an existing file with --kubeconfig, or run in a pod with a service account\n"},
		{"--provider empty --disable-kubelet-api --kubeconfig " + one + " --context nosuch", 1, "vk: make node virtual-kubelet: make a client of the API server: kubeconfig " + one + ": context \"nosuch\" does not exist\n"},
	} {
		var stdout, stderr bytes.Buffer
		code := messageProgram.execute(t.Context(), strings.Fields(tc.args), &stdout, &stderr)
		if code != tc.code || stderr.String() != tc.stderr || stdout.Len() > 0 {
			t.Errorf("vk %s: got %d, %q, and on standard output %q\nwant %d, %q", tc.args, code, &stderr, &stdout, tc.code, tc.stderr)
		}
	}
}

// TestNoArgumentsShowHelp holds that a program without arguments reports the missing provider and not a missing certificate.
func TestNoArgumentsShowHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := messageProgram.execute(t.Context(), nil, &stdout, &stderr)
	text := stderr.String()
	if code != 1 || stdout.Len() > 0 || !strings.HasPrefix(text, "Run a virtual node") || strings.Contains(text, "no certificate") ||
		!strings.HasSuffix(text, "\nvk: no provider chosen: set --provider to one of: bare, empty, other\n") {
		t.Errorf("got %d, %s%s", code, &stdout, text)
	}
}

func TestHelpIsGroupedAndWrapped(t *testing.T) {
	help := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := messageProgram.execute(t.Context(), append(args, "--help"), &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Fatalf("%q: got %d, %s", args, code, &stderr)
		}
		return stdout.String()
	}
	root := help()
	at := 0
	for _, group := range groups {
		next := strings.Index(root, "\n"+group+" flags:\n")
		if next <= at {
			t.Errorf("the group %q is missing, or before an earlier one:\n%s", group, root)
		}
		at = next
	}
	for _, args := range [][]string{nil, {"doctor"}, {"check"}, {"contract"}, {"version"}, {"providers"}, {"config", "print"}} {
		text := help(args...)
		for line := range strings.Lines(text) {
			// Prose has its own line breaks, and commands to copy stay on one line.
			if strings.HasPrefix(strings.TrimSpace(line), "--") && len(strings.TrimRight(line, "\n")) > helpColumns {
				t.Errorf("%q --help has a line of %d columns: %s", args, len(line), line)
			}
		}
		if args == nil {
			continue
		}
		if strings.Contains(text, "--taint-key") {
			t.Errorf("%q --help shows the flags of nodes:\n%s", args, text)
		}
		takes := args[0] != "version" && args[0] != "providers"
		if got := strings.Contains(text, "see vk --help"); got != takes {
			t.Errorf("%q --help names the settings of the node: %t, want %t", args, got, takes)
		}
	}
}

func TestVersionSaysWhatTheProgramIsMadeOf(t *testing.T) {
	run := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := messageProgram.execute(t.Context(), args, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Fatalf("%q: got %d, %s", args, code, &stderr)
		}
		return stdout.String()
	}
	text := run("version")
	for _, want := range []string{"Version:    v9\n", "Commit:     abc\n", "Built:      today\n", "Go:         go1.", "Kubernetes: v", "Platform:   ", "gVisor:     g1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("version lacks %q: %s", want, text)
		}
	}
	if got := run("--version"); got != text {
		t.Errorf("--version says %q, and version %q", got, text)
	}
	var info map[string]string
	if err := json.Unmarshal([]byte(run("version", "-o", "json")), &info); err != nil || info["version"] != "v9" || info["gitCommit"] != "abc" || info["platform"] == "" {
		t.Errorf("got %v, %v", info, err)
	}
	if got := run("version", "-o", "yaml"); !strings.Contains(got, "gVisorVersion: g1\n") {
		t.Errorf("got %s", got)
	}
}

func TestProvidersHaveALineAndASample(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"providers", "bare\nempty  no pods at all\nother  pods elsewhere\n"},
		{"providers empty", "# Provider empty: no pods at all.\n# A sample: keep what you need, with your own values. Pass the file with --provider-config.\nkind: Empty # required\n"},
		{"providers other", "# Provider other: pods elsewhere.\n# It has no sample of a configuration file.\n"},
		{"providers bare", "# Provider bare.\n# It has no sample of a configuration file.\n"},
	} {
		var stdout, stderr bytes.Buffer
		if code := messageProgram.execute(t.Context(), strings.Fields(tc.args), &stdout, &stderr); code != 0 || stdout.String() != tc.want {
			t.Errorf("vk %s: got %d, %q %s, want %q", tc.args, code, &stdout, &stderr, tc.want)
		}
	}
}

func TestShellsCompleteValues(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"__complete --provider|", "bare\nempty\nother\n"},
		{"__complete providers|", "bare\nempty\nother\n"},
		{"__complete --log-level|", "debug\nerror\ninfo\nwarn\n"},
		{"__complete version -o|", "text\njson\nyaml\n"},
	} {
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(strings.TrimSuffix(tc.args, "|")), "")
		if code := messageProgram.execute(t.Context(), args, &stdout, &stderr); code != 0 || !strings.HasPrefix(stdout.String(), tc.want+":4") {
			t.Errorf("%q: got %d, %q %s, want %q", args, code, &stdout, &stderr, tc.want)
		}
	}
}
