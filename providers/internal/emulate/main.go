// SPDX-License-Identifier: Apache-2.0

// Command emulate runs the emulator of a cloud service on this machine until it is stopped. Provider process
// runs its containers. After the start it writes the configuration of the provider, provider.yaml, and variables
// of its environment, provider.env.
//
// With -simulate no container runs, the quotas of the service apply, and the file journal records all events. A
// line of the standard input is the ID of a group whose containers exit.
//
// Usage: emulate -service eci -dir DIR -images DIR
//
//	emulate -service eci -dir DIR -simulate
package main

import (
	"bufio"
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
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// service is the emulator of one service.
type service struct {
	http.Handler
	// report receives the reports of the containers.
	report func(*corev1.Pod)
	// settings returns the configuration of the provider, and variables returns its environment variables.
	settings  func(url, caFile string) string
	variables []string
	// plain selects HTTP without TLS.
	plain bool
	// operation returns the operation of a request. made returns the group that a request made, with the name of
	// its pod, or "".
	operation func(*http.Request) string
	made      func(r *http.Request, body, answer []byte) (id, pod string)
	// groupOf converts the ID of a group at the runner to the ID that made returns. Nil means that they are the
	// same.
	groupOf func(id string) string
	// wait returns when all processes of the service have ended, after the end of its context. Nil means that only the runner has processes.
	wait func()
	// left returns the leftovers of clients at the service, by kind.
	left func() map[string][]string
	// rates are the quotas of the service, and throttled is its answer above them.
	rates     []emulator.Rate
	throttled http.HandlerFunc
}

// behind has everything that a service needs for its containers.
type behind struct {
	runner   nodeutil.Provider
	objects  *emulator.Objects
	groups   *emulator.Fleet
	capacity string // the capacity of the node
	dir      string // the directory for data of the service
}

// sharedFleet returns the fleet of a service without its own fleet.
func (b behind) sharedFleet() *emulator.Fleet { return b.groups }

// services has the known services. Other files may add services.
var services = map[string]func(context.Context, behind) service{"aci": aciService, "eci": eciService, "fargate": fargateService, "stackpath": stackpathService, "zun": zunService}

// leftQuestion is the input line that writes the leftovers at the service into the journal. All other lines are
// IDs of groups that must end.
const leftQuestion = "left?"

// late is the delay of lists.
const late = 500 * time.Millisecond

func main() {
	name := flag.String("service", "", "service to emulate: "+strings.Join(slices.Sorted(maps.Keys(services)), ", "))
	dir := flag.String("dir", "", "directory for all that it keeps")
	images := flag.String("images", "", "directory with images")
	simulate := flag.Bool("simulate", false, "run no containers, keep the quotas, and write a journal")
	flag.Parse()
	if services[*name] == nil || *dir == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *simulate {
		err = runSimulated(ctx, services[*name], *dir)
	} else {
		err = runEmulator(ctx, services[*name], *dir, *images)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "emulate:", err)
		os.Exit(1)
	}
}

// runEmulator serves until ctx ends, and stops the containers then.
func runEmulator(ctx context.Context, open func(context.Context, behind) service, dir, images string) error {
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
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := open(background, behind{runner, objects, emulator.NewFleet(runner, objects, late), "{cpu: 20, memory: 100Gi, pods: 20}", dir})
	runner.UsePodObjects(objects)
	runner.NotifyPods(background, s.report)
	ended := make(chan error, 1)
	go func() { ended <- runner.RunInBackground(background) }()
	serveErr := serveHandler(ctx, s, s, dir)
	stopAll(background, runner)
	cancel()
	if s.wait != nil {
		s.wait()
	}
	return errors.Join(serveErr, <-ended)
}

// runSimulated serves until ctx ends.
func runSimulated(ctx context.Context, open func(context.Context, behind) service, dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	j := &journal{to: file}
	var s service
	runner := newSimulated(func(pod *corev1.Pod) { s.report(pod) }, func(what, id string) { j.write("%s %s", what, s.shownID(id)) })
	objects := &emulator.Objects{}
	s = open(ctx, behind{runner, objects, emulator.NewFleet(runner, objects, late), "{cpu: 100000, memory: 400Ti, pods: 20000}", dir})
	go func() { // ends with its input or with the program
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if lines.Text() == leftQuestion {
				j.recordLeft(s.left())
			} else {
				runner.endContainers(lines.Text(), s.shownID)
			}
		}
	}()
	return serveHandler(ctx, s, j.recordRequests(s, emulator.NewRates(s.operation, s.rates, markRefused(s.throttled), s)), dir)
}

// shownID converts the ID of a group at the runner to the ID that made returns.
func (s service) shownID(id string) string {
	if s.groupOf == nil {
		return id
	}
	return s.groupOf(id)
}

// serveHandler listens on the loopback device, with h instead of the service.
func serveHandler(ctx context.Context, s service, h http.Handler, dir string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	certificate, caFile, err := makeCertificate(dir)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, TLSConfig: certificate, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	url, listen := "https://"+l.Addr().String(), func() error { return server.ServeTLS(l, "", "") }
	if s.plain {
		url, listen = "http://"+l.Addr().String(), func() error { return server.Serve(l) }
	}
	go func() { failed <- listen() }()
	err = replaceFile(filepath.Join(dir, "provider.env"), strings.Join(append(slices.Clone(s.variables), ""), "\n"))
	if err == nil {
		err = replaceFile(filepath.Join(dir, "provider.yaml"), s.settings(url, caFile))
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	return errors.Join(err, server.Close())
}

// replaceFile writes a file at once, so that a waiting process reads all of it.
func replaceFile(file, text string) error {
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// patience is the time limit for containers to stop.
const patience = 30 * time.Second

// stopAll ends all containers.
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
			_ = runner.DeletePod(ctx, pod) // the loop retries
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
