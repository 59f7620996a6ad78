// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

// expression matches the expressions that Nomad replaces in the environment of a task.
var expression = regexp.MustCompile(`\$\{[a-zA-Z0-9_\-.]+\}`)

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "${HOME}", "$${x}", "%{if}", `"\`, "{{ x }}", "$$$${{", "\x00\x01\n\r\t", "äöü", "\xff\xfe", "$(A)", "${NOMAD_META_vkd}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := readHCL(t, literal(s)); got != s {
			t.Errorf("literal(%q): HCL reads %q", s, got)
		}
		if got := expression.ReplaceAllStringFunc(variable(s), func(e string) string {
			if e == "${NOMAD_META_"+dollar+"}" {
				return "$"
			}
			t.Errorf("variable(%q) has the expression %s", s, e)
			return ""
		}); got != s {
			t.Errorf("variable(%q): Nomad reads %q", s, got)
		}
		text, ok := strings.CutPrefix(template([]byte(s)), `{{ base64Decode "`)
		text, ok2 := strings.CutSuffix(text, `" }}`)
		if data, err := base64.StdEncoding.DecodeString(text); !ok || !ok2 || err != nil || !bytes.Equal(data, []byte(s)) {
			t.Errorf("template(%q) is read as %q, %v", s, data, err)
		}
		if !strings.Contains(s, "\x00") {
			line, err := envLine("NAME", s)
			if err != nil || strings.Count(line, "\n") != 1 {
				t.Fatalf("envLine(%q): got %q, %v, want one line", s, line, err)
			}
			if got := readLine(t, strings.TrimSuffix(line, "\n")); got != s {
				t.Errorf("envLine(%q): read as %q", s, got)
			}
		}
		out, err := expand(s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(s, "$$", "$"); readHCL(t, out) != want {
			t.Errorf("expand(%q): HCL reads %q, want %q", s, readHCL(t, out), want)
		}
	})
}

// readHCL reads an HCL template that has no expressions except the three that literal writes.
func readHCL(t *testing.T, s string) string {
	t.Helper()
	out := strings.NewReplacer(`${"\u0024"}`, "\x00dollar", `${"\u0025"}`, "\x00percent", `${"\u000d"}`, "\x00return").Replace(s)
	if strings.ContainsAny(out, "$%\r") {
		t.Fatalf("%q has a sign that HCL looks at", s)
	}
	return strings.NewReplacer("\x00dollar", "$", "\x00percent", "%", "\x00return", "\r").Replace(out)
}

// readLine reads a line of a file of variables by the rules of such files.
func readLine(t *testing.T, line string) string {
	t.Helper()
	text, ok := strings.CutPrefix(line, `NAME="`)
	if !ok || !strings.HasSuffix(text, `"`) {
		t.Fatalf("%q is no line", line)
	}
	text = text[:len(text)-1]
	var out []byte
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"' || text[i] < ' ':
			t.Fatalf("%q ends or breaks at %d", line, i)
		case text[i] != '\\':
			out = append(out, text[i])
		case text[i+1] == 'u':
			n, err := strconv.ParseUint(text[i+2:i+6], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, byte(n))
			i += 5
		default:
			out = append(out, text[i+1])
			i++
		}
	}
	return string(out)
}

func TestNoSecretOnACommandLine(t *testing.T) {
	secret := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}
	spec := []corev1.EnvVar{{Name: "PLAIN", Value: "${x}"}, {Name: "PASSWORD", ValueFrom: secret}, {Name: "URL", Value: "http://$(PASSWORD)@x"}}
	values := []corev1.EnvVar{{Name: "PLAIN", Value: "${x}"}, {Name: "PASSWORD", Value: canary}, {Name: "URL", Value: "http://" + canary + "@x"}, {Name: "FROM", Value: canary}}
	got, err := expand("$(PLAIN) $$(PASSWORD) ${PASSWORD} $(UNKNOWN)", spec, values)
	if want := literal("${x} $(PASSWORD) ${PASSWORD} $(UNKNOWN)"); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, text := range []string{"--password=$(PASSWORD)", "$(URL)", "$(FROM)"} {
		if got, err := expand(text, spec, values); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("expand(%q): got %q, %v, want an error without the value", text, got, err)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := shellexec.Quote(`a'b"$c`); got != `'a'"'"'b"$c'` {
		t.Errorf("got %s", got)
	}
}
