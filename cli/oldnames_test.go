// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"
)

// certOf returns a certificate and its key.
func certOf(t *testing.T) (certPEM, keyPEM []byte, err error) {
	t.Helper()
	return cert.GenerateSelfSignedCertKey("node", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
}

// TestEveryOldNameIsSomething finds rows without an effect, rows with two effects, and names that the program uses itself.
func TestEveryOldNameIsSomething(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	variables := map[string]bool{}
	for _, s := range settings() {
		s.bind(fs, &options{}, s.flag, s.usage)
		for _, variable := range s.env {
			variables[variable] = true
		}
	}
	seen := map[string]bool{}
	for _, n := range oldNames {
		said := 0
		for _, text := range []string{n.now, n.field, n.nothing, n.gone} {
			if text != "" {
				said++
			}
		}
		if said != 1 || n.of == "" {
			t.Errorf("%s: want the program, and one of now, field, nothing and gone", n.name)
		}
		if seen[n.name] || variables[n.name] || n.isFlag() && fs.Lookup(n.flag()) != nil {
			t.Errorf("%s is taken", n.name)
		}
		seen[n.name] = true
		if setting, isFlag := strings.CutPrefix(n.now, "--"); isFlag && fs.Lookup(setting) == nil {
			t.Errorf("%s: there is no flag %s", n.name, n.now)
		}
		if n.gone != "" && !n.isFlag() || n.field != "" && n.isFlag() || n.field != "" && n.provider == "" {
			t.Errorf("%s: only a flag is gone, and only a variable of a provider sets a field", n.name)
		}
	}
}

func TestOldNamesOfOtherProvidersAreNoWarning(t *testing.T) {
	r, err := resolveWith(t, []string{"--disable-kubelet-api", "--enable-controllers=PVControllers"}, map[string]string{"CLUSTER_RESOURCE_ID": "c", "DEFAULTNODE_NAME": "n1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if r.NodeName != "n1" || r.origins["nodename"] != "environment DEFAULTNODE_NAME" {
		t.Errorf("got the name %q from %s", r.NodeName, r.origins["nodename"])
	}
	common := "environment variable DEFAULTNODE_NAME is deprecated: use --nodename"
	if diff := cmp.Diff([]string{common}, r.warningsFor("mock")); diff != "" {
		t.Error(diff)
	}
	if got := r.warningsFor("aci"); len(got) != 2 || !strings.HasPrefix(got[1], "environment variable CLUSTER_RESOURCE_ID has no effect: ") {
		t.Errorf("got %q", got)
	}
	if got := r.warningsFor("tensilekube"); len(got) != 2 || !strings.HasPrefix(got[1], "flag --enable-controllers has no effect: ") {
		t.Errorf("got %q", got)
	}
}

// TestProgramsMayUseOldFlagsOfOtherProviders: a program adds flags to Command, and pflag panics if a flag is declared twice.
func TestProgramsMayUseOldFlagsOfOtherProviders(t *testing.T) {
	for _, n := range oldNames {
		if !n.isFlag() || n.provider == "" {
			continue
		}
		fs := Program{Providers: []Provider{{Name: "theirs", New: newEmpty}}}.Command().PersistentFlags()
		if fs.Lookup(n.flag()) != nil {
			t.Errorf("a program without the provider %s has the flag %s", n.provider, n.name)
		}
		if fs := published.Command().PersistentFlags(); fs.Lookup(n.flag()) == nil {
			t.Errorf("a program with the provider %s lacks the flag %s", n.provider, n.name)
		}
	}
}

func TestBooleansMayBeTwoWords(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	(&options{}).define(fs)
	got, err := joinBooleans(fs, []string{"doctor", "--disable-taint", "true", "--nodename", "true", "--provider", "mock", "--drain-on-exit", "--", "--disable-taint", "true"})
	want := []string{"doctor", "--disable-taint=true", "--nodename", "true", "--provider", "mock", "--drain-on-exit", "--", "--disable-taint", "true"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	var out bytes.Buffer
	if code := testProgram.execute(t.Context(), []string{"--disable-taint", "false"}, &out, &out); code != 1 || out.String() != "vk: flag --disable-taint false: write --disable-taint=false\n" {
		t.Errorf("got %d, %s", code, &out)
	}
}
