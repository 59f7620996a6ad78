// SPDX-License-Identifier: Apache-2.0

// Command emulate runs the emulator of a cloud service on this machine until it is stopped, with containers that are run by provider process.
// It writes the configuration of the provider, provider.yaml, once it listens.
//
// Usage: emulate -service eci -dir DIR -images DIR
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
)

// service is the emulator of one service.
type service struct {
	http.Handler
	// report takes the reports of the containers.
	report func(*corev1.Pod)
	// settings is the configuration of its provider.
	settings func(url, caFile string) string
}

// services are those that there are.
var services = map[string]func(*emulator.Fleet) service{"aci": aciService, "eci": eciService, "fargate": fargateService}

// late is how late lists are.
const late = 500 * time.Millisecond

func main() {
	name := flag.String("service", "", "service to emulate: "+strings.Join(slices.Sorted(maps.Keys(services)), ", "))
	dir := flag.String("dir", "", "directory for all that it keeps")
	images := flag.String("images", "", "directory with images")
	flag.Parse()
	if services[*name] == nil || *dir == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, services[*name], *dir, *images); err != nil {
		fmt.Fprintln(os.Stderr, "emulate:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and stops the containers then.
func run(ctx context.Context, open func(*emulator.Fleet) service, dir, images string) error {
	settings := process.Config{StateDir: filepath.Join(dir, "process")}
	if images != "" {
		settings.Images = []string{images}
	}
	runner, err := process.New(ctx, cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "emulator"}}, Recorder: &record.FakeRecorder{}},
		NodeName:       "emulator", InternalIP: "127.0.0.1",
	}, settings)
	if err != nil {
		return err
	}
	objects := &emulator.Objects{}
	fleet := emulator.NewFleet(runner, objects, late)
	s := open(fleet)
	runner.UsePodObjects(objects)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	runner.NotifyPods(background, s.report)
	ended := make(chan error, 1)
	go func() { ended <- runner.RunInBackground(background) }()
	serveErr := serve(ctx, s, dir)
	stopAll(background, runner)
	cancel()
	return errors.Join(serveErr, <-ended)
}

// serve listens on the loopback device.
func serve(ctx context.Context, s service, dir string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	certificate, caFile, err := certify(dir)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s, TLSConfig: certificate, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(l, "", "") }()
	file := filepath.Join(dir, "provider.yaml")
	err = os.WriteFile(file+".new", []byte(s.settings("https://"+l.Addr().String(), caFile)), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file) // who waits for it reads all of it
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	return errors.Join(err, server.Close())
}

// patience is how long containers have to end.
const patience = 30 * time.Second

// stopAll ends what runs.
func stopAll(ctx context.Context, runner node.PodLifecycleHandler) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		pods, err := runner.GetPods(ctx)
		if err == nil && len(pods) == 0 || ctx.Err() != nil {
			return
		}
		for _, pod := range pods {
			pod = pod.DeepCopy()
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(1))
			_ = runner.DeletePod(ctx, pod) // it is asked again
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
