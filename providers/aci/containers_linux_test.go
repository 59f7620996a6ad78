// SPDX-License-Identifier: Apache-2.0

//go:build linux

package aci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
)

// TestContractOnContainers runs the contract with containers that are real ones, by provider process behind the emulator: by runc on the kernel of
// this machine, and by gVisor on one of their own. What they say, how they end and what runs in them by exec is theirs.
func TestContractOnContainers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("containers of another user than this one need root: run the test as root, as CI does")
	}
	busybox, errBusybox := exec.LookPath("busybox")
	_, errRunc := exec.LookPath("runc")
	runsc, errRunsc := filepath.Abs("../../bin/runsc")
	if errRunsc == nil {
		_, errRunsc = os.Stat(runsc)
	}
	images := t.TempDir()
	if errBusybox == nil {
		applets := strings.Fields("sh cat chmod date echo env false head hostname id kill ls mkdir mv od printf ps rm sed seq sleep stat stty tail test touch tr true usleep wc")
		pack := exec.CommandContext(t.Context(), "go", append([]string{"run", "../process/demo/pack", "-name", "tools", "-o", filepath.Join(images, "tools.tar"), busybox}, applets...)...)
		if said, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("make an image: %v: %s", err, said)
		}
	}
	for isolation, c := range map[string]struct {
		missing error
		path    string
	}{
		process.IsolationRunc:   {missing: errors.Join(errBusybox, errRunc)},
		process.IsolationGVisor: {missing: errors.Join(errBusybox, errRunsc), path: runsc},
	} {
		t.Run(isolation, func(t *testing.T) {
			if c.missing != nil {
				t.Skip(c.missing)
			}
			container, command := providertest.Shell("tools")
			providertest.Run(t, providertest.Harness{
				Backend: func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
					return containersBackend(ctx, env, process.Config{Images: []string{images}, Isolation: isolation, RuntimePath: c.path})
				},
				Container: container, Command: command,
				Patience: 2 * time.Minute, Every: 50 * time.Millisecond, Tick: time.Second, Parallel: 8, Many: 8,
				Subject:  providertest.Subject{Provider: "aci", Variant: isolation, Backend: "an emulator of ACI whose containers are those of " + isolation},
				Unproven: containersUnproven(), Except: containersExceptions(),
			})
		})
	}
}

// containersBackend is ACI for one check, with provider process behind it.
func containersBackend(ctx context.Context, env providertest.Env, settings process.Config) (*providertest.Backend, error) {
	dir, err := os.MkdirTemp("", "aci-contract-") // its sockets have short paths
	if err != nil {
		return nil, err
	}
	settings.StateDir = filepath.Join(dir, "state")
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // until what runs is stopped
	runs, err := process.New(ctx, cli.ProviderInput{
		ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "emulator"}}, Recorder: &record.FakeRecorder{}},
		NodeName:       "emulator", InternalIP: "127.0.0.1",
	}, settings)
	if err != nil {
		cancel()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	a, objects := &azure{}, &emulator.Objects{}
	runs.UsePodObjects(objects)
	err = a.start(ctx, dir, runs, objects, late)
	ended := make(chan error, 1)
	go func() { ended <- runs.RunInBackground(ctx) }()
	stop := func() error {
		err := stopAll(runs)
		cancel()
		return errors.Join(err, <-ended, os.RemoveAll(dir))
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	back, err := a.backend(ctx, env)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	back.Close = stop
	return back, nil
}

// stopAll ends what runs, and waits until nothing does.
func stopAll(runs nodeutil.Provider) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		pods, err := runs.GetPods(ctx)
		if err == nil && len(pods) == 0 {
			return nil
		}
		for _, pod := range pods {
			pod = pod.DeepCopy()
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64)
			if failed := runs.DeletePod(ctx, pod); failed != nil && !errdefs.IsNotFound(failed) {
				err = errors.Join(err, failed)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d pods are left: %w", len(pods), errors.Join(err, ctx.Err()))
		}
	}
}

// containersExceptions are the checks of what ACI does not have, and of what this emulator does not pass on.
func containersExceptions() map[string]string {
	except := lacking()
	except["settings/dns"] = "the emulator gives containers the names that this machine has"
	return except
}

// containersUnproven are features whose fields are passed on as they are, and which no container of this test sees.
func containersUnproven() map[capability.Feature]string {
	return map[capability.Feature]string{
		capability.TokenVolumes:  "no check of the contract has tokens; the tests of the mapping do",
		capability.OtherVolumes:  "azureFile alone, by the tests of the mapping",
		capability.DNS:           "ACI gets the fields, by the tests of the mapping; the emulator passes none on",
		capability.NetworkProbes: "no script of the contract listens; the tests of the mapping have them",
	}
}
