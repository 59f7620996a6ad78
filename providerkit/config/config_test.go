// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"errors"
	stdslog "log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

type settings struct {
	Kind    string              `json:"kind"`
	Address string              `json:"address" env:"CLOUD_ADDR,OLD_CLOUD_ADDR"`
	Regions []string            `json:"regions"`
	MaxAge  metav1.Duration     `json:"maxAge"`
	Pods    int32               `json:"pods"`
	Weight  float64             `json:"weight"`
	Retries uint8               `json:"retries"`
	Spot    bool                `json:"spot"`
	Limits  corev1.ResourceList `json:"limits"`
	Auth    *auth               `json:"auth"`
	Next    *settings           `json:"next"` // has itself in it
	inner
	hidden string
}

type inner struct {
	ClusterDNS []string `json:"clusterDNS"`
}

type auth struct {
	User  string        `json:"user"`
	URL   string        `json:"URL"`
	Token config.Secret `json:"token"`
}

var format = config.Format[settings]{
	APIVersion: "cloud.example/v1", Kind: "CloudConfiguration", Env: "TEST_CLOUD",
	Default: func() settings { return settings{Pods: 110, hidden: "kept"} },
}

const header = "apiVersion: cloud.example/v1\nkind: CloudConfiguration\n"

// write makes a temporary directory the working directory, and writes a file there.
func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "c.yaml", header+"address: here\nregions: [a, b]\nmaxAge: 1m\nlimits: {cpu: 2}\nauth: {user: me}\nspot: true\n")
	c, err := format.Load("c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Address != "here" || cmp.Diff([]string{"a", "b"}, c.Regions) != "" || c.MaxAge.Duration != time.Minute || !c.Spot || c.Auth.User != "me" || c.Auth.Token.IsSet() {
		t.Errorf("got %+v", c)
	}
	if c.Kind != format.Kind {
		t.Errorf("kind: got %q", c.Kind)
	}
	if c.Pods != 110 || c.hidden != "kept" {
		t.Errorf("defaults: got %d pods and %q, want 110 and kept", c.Pods, c.hidden)
	}
	if c, err := format.Load(""); err != nil || c.Pods != 110 || c.Auth != nil {
		t.Errorf("without a file: got %+v, %v", c, err)
	}
}

func TestEnvironmentIsAboveTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "c.yaml", header+"address: file\nregions: [a, b]\npods: 1\nclusterDNS: [file]\nauth: {user: file}\n")
	for name, value := range map[string]string{
		"OLD_CLOUD_ADDR": "old", "CLOUD_ADDR": "tool", "TEST_CLOUD_REGIONS": "c, d", "TEST_CLOUD_MAX_AGE": "2m", "TEST_CLOUD_PODS": "7",
		"TEST_CLOUD_WEIGHT": "0.5", "TEST_CLOUD_RETRIES": "3", "TEST_CLOUD_SPOT": "true", "TEST_CLOUD_AUTH_TOKEN": "hunter2",
		"TEST_CLOUD_CLUSTER_DNS": "10.0.0.1", "TEST_CLOUD_AUTH_USER": "", "TEST_CLOUD_KIND": "other", "TEST_CLOUD_AUTH_URL": "u",
	} {
		t.Setenv(name, value)
	}
	c, err := format.Load("c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Kind != format.Kind || c.Address != "tool" || c.MaxAge.Duration != 2*time.Minute || c.Pods != 7 || c.Weight != 0.5 || c.Retries != 3 || !c.Spot {
		t.Errorf("got %+v", c)
	}
	if got := append(c.Regions, c.ClusterDNS...); cmp.Diff([]string{"c", "d", "10.0.0.1"}, got) != "" {
		t.Errorf("lists: got %v", got)
	}
	if c.Auth.User != "file" || c.Auth.URL != "u" || c.Auth.Token.Value(t.Context()) != "hunter2" {
		t.Errorf("in a field: got user %q and token %q", c.Auth.User, c.Auth.Token.Value(t.Context()))
	}
	t.Setenv("TEST_CLOUD_ADDRESS", "own")
	if c, err = format.Load(""); err != nil || c.Address != "own" || c.Auth.Token.Value(t.Context()) != "hunter2" {
		t.Errorf("without a file: got %+v, %v", c, err)
	}
}

// TestFilesThatAreRefused: the error names the wrong place in the file, and the remedy.
func TestFilesThatAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tt := range []struct{ name, content, want string }{
		{"typo", header + "region: x", `unknown field "region" at c.yaml:3; did you mean regions?`},
		{"key", header + "auth:\n  zone: x", `unknown field "auth.zone" at c.yaml:4; known are: URL, token, user`},
		{"version", "apiVersion: cloud.example/v9\nkind: CloudConfiguration", `field "apiVersion" at c.yaml:1: unknown apiVersion "cloud.example/v9"; known is: cloud.example/v1`},
		{"kind", "apiVersion: cloud.example/v1\nkind: Pod", `field "kind" at c.yaml:2: unknown kind "Pod"; known is: CloudConfiguration`},
		{"no header", "address: x", "c.yaml: apiVersion is missing, want apiVersion: cloud.example/v1\nc.yaml: kind is missing, want kind: CloudConfiguration"},
		{"list as kind", "apiVersion: cloud.example/v1\nkind: [CloudConfiguration, Pod]", `field "kind" at c.yaml:2: unknown kind "CloudConfiguration, Pod"; known is: CloudConfiguration`},
		{"type", header + "pods: many", `field "pods" must be a int32, not "many" at c.yaml:3`},
		{"syntax", "a: [", "c.yaml: line 1: did not find expected node content"},
	} {
		write(t, "c.yaml", tt.content)
		if c, err := format.Load("c.yaml"); err == nil || err.Error() != tt.want || c.hidden != "" {
			t.Errorf("%s: got %+v and %v\nwant %s", tt.name, c, err, tt.want)
		}
	}
	if _, err := format.Load("none.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: got %v", err)
	}
}

func TestVariablesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"TEST_CLOUD_PODS":    `environment variable TEST_CLOUD_PODS, for the field "pods": want a whole number`,
		"TEST_CLOUD_RETRIES": `environment variable TEST_CLOUD_RETRIES, for the field "retries": want a whole number, 0 or more`,
		"TEST_CLOUD_WEIGHT":  `environment variable TEST_CLOUD_WEIGHT, for the field "weight": want a number`,
		"TEST_CLOUD_SPOT":    `environment variable TEST_CLOUD_SPOT, for the field "spot": want true or false`,
		"TEST_CLOUD_LIMITS":  `environment variable TEST_CLOUD_LIMITS, for the field "limits": it is set by the file alone: unset the variable`,
		"TEST_CLOUD_MAX_AGE": `environment variable TEST_CLOUD_MAX_AGE, for the field "maxAge": time: invalid duration "-x"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "-x")
			if _, err := format.Load(""); err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

// TestUnversionedFiles: the provider itself reads files from before there were versions, in any format.
func TestUnversionedFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	old := format
	old.Unversioned = func(name string, data []byte) (settings, error) {
		return settings{Address: name + " " + strings.TrimSpace(string(data))}, nil
	}
	t.Setenv("TEST_CLOUD_PODS", "7")
	for name, content := range map[string]string{"c.toml": "[section]\na = 1", "c.yaml": "Address: x"} {
		write(t, name, content)
		if c, err := old.Load(name); err != nil || c.Address != name+" "+content || c.Pods != 7 {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
	}
	write(t, "c.json", `{"a": `)
	if _, err := old.Load("c.json"); err == nil || !strings.Contains(err.Error(), "c.json") {
		t.Errorf("a broken file of a known kind: got %v", err)
	}
	write(t, "c.yaml", "kind: CloudConfiguration")
	if _, err := old.Load("c.yaml"); err == nil || !strings.Contains(err.Error(), "apiVersion is missing") {
		t.Errorf("half a header: got %v", err)
	}
}

// TestRenamedFieldIsReadByItsOldName: the old name works in files and in the environment, and causes a warning
// with the new name.
func TestRenamedFieldIsReadByItsOldName(t *testing.T) {
	t.Chdir(t.TempDir())
	var said bytes.Buffer
	defer func(l log.Logger) { log.L = l }(log.L)
	log.L = slog.FromSlog(stdslog.New(stdslog.NewTextHandler(&said, nil)))
	renamed := format
	renamed.Renamed = map[string]string{"cloudAddress": "address"}
	write(t, "c.yaml", header+"pods: 1\ncloudAddress: old\n")
	if c, err := renamed.Load("c.yaml"); err != nil || c.Address != "old" || c.Pods != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
	if text := said.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "The field cloudAddress at c.yaml:4 is called address now: rename it") {
		t.Errorf("it says %q", text)
	}
	said.Reset()
	t.Setenv("TEST_CLOUD_CLOUD_ADDRESS", "variable")
	if c, err := renamed.Load("c.yaml"); err != nil || c.Address != "variable" {
		t.Errorf("got %+v, %v", c, err)
	}
	if text := said.String(); !strings.Contains(text, "The environment variable TEST_CLOUD_CLOUD_ADDRESS is called TEST_CLOUD_ADDRESS now: rename it") {
		t.Errorf("it says %q", text)
	}
	said.Reset()
	t.Setenv("TEST_CLOUD_ADDRESS", "new")
	write(t, "c.yaml", header+"address: file\n")
	if c, err := renamed.Load("c.yaml"); err != nil || c.Address != "new" || said.Len() > 0 {
		t.Errorf("got %+v, %v, with %q", c, err, &said)
	}
	write(t, "c.yaml", header+"address: file\ncloudAddress: file\n")
	if _, err := renamed.Load("c.yaml"); err == nil || err.Error() != `field "cloudAddress" at c.yaml:4: it is the old name of address, which is there too: remove it` {
		t.Errorf("got %v", err)
	}
}
