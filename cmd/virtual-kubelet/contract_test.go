// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// TestContractOfMock runs the command contract like a user, with a provider that needs no account.
func TestContractOfMock(t *testing.T) {
	defer func(l log.Logger) { log.L = l }(log.L)
	path := filepath.Join(t.TempDir(), "mock.yaml")
	var out bytes.Buffer
	// The first call of a process starts a goroutine of package os/signal that never ends, which must not be in a bubble.
	never := make(chan os.Signal, 1)
	signal.Notify(never, os.Interrupt)
	signal.Stop(never)
	synctest.Test(t, func(t *testing.T) {
		cmd := cli.Program{Version: "v1", Providers: providers()}.Command()
		cmd.SetArgs([]string{"contract", "--provider=mock", "--result", path, "--backend=memory"})
		cmd.SetIn(strings.NewReader("yes\n"))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Errorf("it ends with %v:\n%s", err, &out)
		}
	})
	f, err := providertest.ReadResultFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := map[providertest.Outcome]int{}
	for _, k := range f.Checks {
		n[k.Outcome]++
	}
	if f.Partial || f.Version != "v1" || f.Image != "" || n[providertest.Failed] > 0 || n[providertest.Passed] < 60 {
		t.Errorf("the results are about %+v, partial %t, with %v, want at least 60 checks passed and none failed", f.Subject, f.Partial, n)
	}
	if !strings.Contains(out.String(), "pods at once") || strings.Contains(out.String(), "busybox") {
		t.Errorf("it says first what it makes, and no image where none is run:\n%.600s", &out)
	}
}
