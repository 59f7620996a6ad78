// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestEmulator is run by hack/huaweicci-demo.sh: it runs the emulator in front of an existing cluster until it
// is interrupted. It writes the configuration with the keys, which are no secrets.
func TestEmulator(t *testing.T) {
	path := os.Getenv("VK_CCI_DEMO")
	if path == "" {
		t.Skip("this is no test: run hack/huaweicci-demo.sh")
	}
	c := startCloud(t, &remotetest.Worker{API: testapi.Start(t), Name: os.Getenv("VK_CCI_DEMO_WORKER")}, API20)
	if err := os.WriteFile(path, []byte(c.settings("demo")+"accessKey: "+accessKey+"\nsecretKey: "+secretKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	c.tookEverything(t)
}
