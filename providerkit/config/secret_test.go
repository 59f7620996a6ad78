// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	stdslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

const value = "hunter2"

// holder has secrets where formatting finds them by methods, and where it finds them only by reflection.
type holder struct {
	Token   config.Secret
	Pointer *config.Secret
	private config.Secret
	list    []config.Secret
}

func TestSecretsAreNeverShown(t *testing.T) {
	s := config.Literal(value)
	h := holder{Token: s, Pointer: &s, private: s, list: []config.Secret{s}}
	var shown []string
	for _, v := range []any{s, &s, h, &h, []any{s}, map[string]config.Secret{"a": s}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%10.3s"} {
			shown = append(shown, fmt.Sprintf(verb, v))
		}
		asJSON, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var asText, asRecord bytes.Buffer
		slog.New(slog.NewTextHandler(&asText, nil)).Info("text", "v", v)
		slog.New(slog.NewJSONHandler(&asRecord, nil)).Info("json", "v", v)
		shown = append(shown, string(asJSON), string(asYAML), asText.String(), asRecord.String(), fmt.Errorf("wrap %v", v).Error())
	}
	for _, text := range shown {
		if strings.Contains(text, value) || strings.Contains(text, fmt.Sprintf("%x", value)) {
			t.Errorf("shown: %s", text)
		}
	}
	asJSON, _ := json.Marshal(s)
	asYAML, _ := yaml.Marshal(s)
	for _, got := range []string{fmt.Sprintf("%v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%d", s), s.LogValue().String(), strings.Trim(string(asJSON), `"`), strings.Trim(string(asYAML), "'\n")} {
		if got != "[redacted]" {
			t.Errorf("got %s, want [redacted]", got)
		}
	}
	if got := fmt.Sprint(config.Literal("")); got != "" {
		t.Errorf("a secret that is not set: got %s", got)
	}
}

func TestSecretsOfAConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TEST_TOKEN", "of the environment")
	write(t, "token", "of the file\r\n")
	write(t, "empty", "\n")
	for content, want := range map[string]string{
		"hunter2": "hunter2", "0123": "0123", "'a b'": "a b", "null": "", `""`: "",
		"{file: token}": "of the file", "{env: TEST_TOKEN}": "of the environment",
	} {
		write(t, "c.yaml", header+"auth: {token: "+content+"}")
		c, err := format.Load("c.yaml")
		if err != nil {
			t.Errorf("%s: %v", content, err)
			continue
		}
		if got := c.Auth.Token.Value(t.Context()); got != want || c.Auth.Token.IsSet() != (want != "") {
			t.Errorf("%s: got %q, want %q", content, got, want)
		}
	}
	const shape = `want the secret as text, or where it is: {file: PATH} or {env: NAME}`
	for content, want := range map[string]string{
		"'[redacted]'":           `field "auth.token": the secret itself is missing: this is [redacted], as it is shown at c.yaml:3`,
		"[hunter2]":              `field "auth.token": ` + shape + ` at c.yaml:3`,
		"{value: hunter2}":       `field "auth.token": unknown field "value": ` + shape + ` at c.yaml:3`,
		"{file: [hunter2]}":      `field "auth.token": ` + shape + ` at c.yaml:3`,
		"{file: a, env: hunter}": `field "auth.token": ` + shape + ` at c.yaml:3`,
		"{env: TEST_NONE}":       `field "auth.token": environment variable TEST_NONE is not set at c.yaml:3`,
		"{file: none}":           `field "auth.token": open none: no such file or directory at c.yaml:3`,
		"{file: empty}":          `field "auth.token": use empty: the file is empty at c.yaml:3`,
	} {
		write(t, "c.yaml", header+"auth: {token: "+content+"}")
		if _, err := format.Load("c.yaml"); err == nil || err.Error() != want {
			t.Errorf("%s: got %v\nwant %s", content, err, want)
		}
	}
}

func TestSecretsFollowTheirFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "token", "first\n")
	write(t, "c.yaml", header+"auth: {token: {file: token}}")
	synctest.Test(t, func(t *testing.T) {
		c, err := format.Load("c.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		ctx := log.WithLogger(t.Context(), stdslog.FromSlog(slog.New(slog.NewTextHandler(&logged, nil))))
		see := func(want string) {
			t.Helper()
			time.Sleep(time.Second)
			if got := c.Auth.Token.Value(ctx); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		see("first")
		write(t, "token", "second\n")
		see("second")
		if logged.Len() > 0 {
			t.Errorf("logged: %s", &logged)
		}
		if err := os.Remove("token"); err != nil {
			t.Fatal(err)
		}
		see("second")
		see("second")
		if n := strings.Count(logged.String(), "stays in use"); n != 1 || strings.Contains(logged.String(), "second") {
			t.Errorf("logged %d times, want once:\n%s", n, &logged)
		}
		write(t, "token", "third\n")
		see("third")
	})
}
