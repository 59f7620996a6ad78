// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// runUntilStopped runs a pod until its stop order.
func runUntilStopped(ctx context.Context, c podjob.Config) error {
	if err := c.Host.Claim(ctx); err != nil {
		return err
	}
	b, err := c.Host.Bundle(ctx)
	if err != nil {
		return err
	}
	if err := c.Host.WriteStatus(ctx, podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodRunning, Message: b.Pod.Name}}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.Wake:
		}
		if stop, err := c.Host.StopOrder(ctx); err != nil || stop != nil {
			return errors.Join(err, c.Host.WriteStatus(ctx, podjob.Status{Ended: true, Stopped: true, Pod: corev1.PodStatus{Phase: corev1.PodSucceeded}}))
		}
	}
}

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func agent(t *testing.T, u UserData, dir string) *Agent {
	t.Helper()
	a, err := NewAgent(AgentConfig{UserData: u, Dir: dir, Version: "v1", Run: runUntilStopped, PowerOff: func(why string) { t.Errorf("powered off: %s", why) }})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve serves an agent until the test ends or end runs, and returns the agent's address.
func serve(t *testing.T, a *Agent) (address string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx, l) }()
	ended := false
	end = func() {
		if cancel(); !ended {
			ended = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return l.Addr().String(), end
}

func joined(t *testing.T, a *Authority, token, address string) *Client {
	t.Helper()
	c := a.Client(token, address)
	t.Cleanup(c.Close)
	if err := c.Join(t.Context(), "", func(context.Context, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return c
}

func bundle(uid string) podjob.Bundle {
	return podjob.Bundle{Node: &corev1.Node{}, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-" + uid, UID: types.UID(uid)}}}
}

// watched returns the states from Watch.
func watched(t *testing.T, c *Client) <-chan State {
	t.Helper()
	states := make(chan State, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Watch(ctx, func(s State) { states <- s }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return states
}

func await(t *testing.T, states <-chan State, want func(State) bool) State {
	t.Helper()
	for {
		select {
		case s := <-states:
			if want(s) {
				return s
			}
		case <-t.Context().Done():
			t.Fatal("the machine did not get there")
		}
	}
}

func TestPodOfAMachineIsGivenWatchedAndStopped(t *testing.T) {
	at := authority(t)
	address, _ := serve(t, agent(t, at.UserData("m1", "", time.Hour, 0), t.TempDir()))
	c := joined(t, at, "m1", address)
	states := watched(t, c)
	await(t, states, func(s State) bool { return s.Pod == "" && s.Version == "v1" })
	if err := c.Stop(t.Context(), time.Second); !errors.Is(err, ErrNoPod) {
		t.Errorf("stop of a machine without a pod: %v", err)
	}
	if err := c.Give(t.Context(), bundle("u1")); err != nil {
		t.Fatal(err)
	}
	s := await(t, states, func(s State) bool { return s.Status != nil })
	if s.Pod != "u1" || s.Status.Pod.Phase != corev1.PodRunning || s.Status.Pod.Message != "p-u1" {
		t.Errorf("the state is %+v", s)
	}
	if err := c.Renew(t.Context(), bundle("u1")); err != nil {
		t.Error(err)
	}
	if err := c.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	await(t, states, func(s State) bool { return s.Status.Ended })
}

func TestFirstPodTakesTheMachine(t *testing.T) {
	at := authority(t)
	address, _ := serve(t, agent(t, at.UserData("m1", "", time.Hour, 0), t.TempDir()))
	c := joined(t, at, "m1", address)
	for i, want := range []error{nil, nil, ErrTaken} {
		if err := c.Give(t.Context(), bundle([]string{"u1", "u1", "u2"}[i])); !errors.Is(err, want) {
			t.Errorf("give %d: %v, want %v", i, err, want)
		}
	}
	if err := c.Renew(t.Context(), bundle("u2")); !errors.Is(err, ErrTaken) {
		t.Errorf("renew of another pod: %v", err)
	}
	forOne, _ := serve(t, agent(t, at.UserData("m2", "u9", time.Hour, 0), t.TempDir()))
	if err := joined(t, at, "m2", forOne).Give(t.Context(), bundle("u1")); !errors.Is(err, ErrTaken) {
		t.Errorf("another pod than the one it was started for: %v", err)
	}
}

// TestMachineIsSignedOnce: a later reader of the user data, such as a pod, cannot pose as the machine.
func TestMachineIsSignedOnce(t *testing.T) {
	at := authority(t)
	u := at.UserData("m1", "", time.Hour, 0)
	address, _ := serve(t, agent(t, u, t.TempDir()))
	c := at.Client("m1", address)
	defer c.Close()
	if _, err := c.Stats(t.Context()); !errors.Is(err, ErrStranger) {
		t.Errorf("a machine that has not joined answers: %v", err)
	}
	recorded := ""
	for range 2 { // the second time, Join has no work
		if err := c.Join(t.Context(), recorded, func(_ context.Context, f string) error {
			if recorded != "" {
				t.Error("it is signed twice")
			}
			recorded = f
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	again, _ := serve(t, agent(t, u, t.TempDir()))
	c2 := at.Client("m1", again)
	defer c2.Close()
	if err := c2.Join(t.Context(), recorded, func(context.Context, string) error { return nil }); !errors.Is(err, ErrStranger) {
		t.Errorf("another key with the same secret: %v", err)
	}
	u.Secret = []byte("guessed")
	guesses, _ := serve(t, agent(t, u, t.TempDir()))
	c3 := at.Client("m1", guesses)
	defer c3.Close()
	if err := c3.Join(t.Context(), "", func(context.Context, string) error { return nil }); !errors.Is(err, ErrStranger) {
		t.Errorf("another secret: %v", err)
	}
}

// TestStrangerIsRefused: the machine and the node refuse strangers, even with a certificate of the authority for another machine.
func TestStrangerIsRefused(t *testing.T) {
	at, other := authority(t), authority(t)
	address, _ := serve(t, agent(t, at.UserData("m1", "", time.Hour, 0), t.TempDir()))
	joined(t, at, "m1", address)
	c := other.Client("m1", address)
	defer c.Close()
	if err := c.Join(t.Context(), "", func(context.Context, string) error { return nil }); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger joins the machine: %v", err)
	}
	swapped := at.Client("m2", address)
	defer swapped.Close()
	if err := swapped.Give(t.Context(), bundle("u1")); !errors.Is(err, ErrStranger) {
		t.Errorf("machine m1 at the address of m2: %v", err)
	}
	machine, err := at.signKey(&at.key.PublicKey, machineName("m3"), x509.ExtKeyUsageServerAuth, machineLife)
	if err != nil {
		t.Fatal(err)
	}
	at.node.Certificate, at.node.PrivateKey, at.node.Leaf = [][]byte{machine.Raw}, at.key, machine
	posing := at.Client("m1", address)
	defer posing.Close()
	if err := posing.Give(t.Context(), bundle("u1")); err == nil {
		t.Error("a machine poses as the node")
	}
}

// TestAgentThatStartsAgainKnowsItsPod: it knows its key, that it has joined, and its pod. It does not start the pod again.
func TestAgentThatStartsAgainKnowsItsPod(t *testing.T) {
	at := authority(t)
	u, dir := at.UserData("m1", "", time.Hour, 0), t.TempDir()
	address, end := serve(t, agent(t, u, dir))
	c := joined(t, at, "m1", address)
	if err := c.Give(t.Context(), bundle("u1")); err != nil {
		t.Fatal(err)
	}
	seen, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := c.Watch(seen, func(s State) {
		if s.Status != nil {
			cancel()
		}
	}); err != nil {
		t.Fatal(err)
	}
	end()
	text, err := os.ReadFile(filepath.Join(dir, keptFile))
	if err != nil || strings.Contains(string(text), `"secret"`) {
		t.Errorf("the secret is kept after the machine has joined: %s, %v", text, err)
	}
	address, _ = serve(t, agent(t, u, dir))
	again := at.Client("m1", address)
	t.Cleanup(again.Close)
	s := await(t, watched(t, again), func(s State) bool { return s.Status != nil && s.Status.Ended })
	if s.Pod != "u1" || s.Status.Pod.Phase != corev1.PodFailed || !strings.Contains(s.Status.Pod.Message, "started again") {
		t.Errorf("after a start of the agent the state is %+v", s)
	}
}

func TestMachineEndsWithoutItsNode(t *testing.T) {
	at := authority(t)
	for name, tt := range map[string]struct {
		pod, ended       bool
		orphan, abandons time.Duration
		want             time.Duration
	}{
		"no pod":              {orphan: time.Hour, want: time.Hour},
		"ended":               {pod: true, ended: true, orphan: time.Hour, want: time.Hour},
		"runs":                {pod: true, orphan: time.Hour},
		"runs, and abandoned": {pod: true, orphan: time.Hour, abandons: 3 * time.Hour, want: 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				a := agent(t, at.UserData("m1", "", tt.orphan, tt.abandons), dir)
				if tt.pod {
					if err := a.takePod(bundle("u1")); err != nil {
						t.Fatal(err)
					}
				}
				if tt.ended {
					if err := (host{a}).WriteStatus(t.Context(), podjob.Status{Ended: true}); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				time.Sleep(time.Minute)
				a.recordContact()
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				why := a.awaitOrphan(ctx)
				if took := time.Since(began) - time.Minute; (why != "") != (tt.want > 0) || tt.want > 0 && took != tt.want {
					t.Errorf("%q after %s, want it after %s", why, took, tt.want)
				}
			})
		})
	}
}

func TestLogIsReadAfterThePodHasEnded(t *testing.T) {
	at := authority(t)
	dir := t.TempDir()
	a := agent(t, at.UserData("m1", "", time.Hour, 0), dir)
	address, _ := serve(t, a)
	c := joined(t, at, "m1", address)
	if _, err := c.Logs(t.Context(), "main", api.ContainerLogOpts{}); !errors.Is(err, ErrNoPod) {
		t.Errorf("the log of no pod: %v", err)
	}
	if err := c.Give(t.Context(), bundle("u1")); err != nil {
		t.Fatal(err)
	}
	of := filepath.Join(dir, logDir, "ns_p-u1_u1", "main")
	if err := os.MkdirAll(of, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(of, "0.log"), []byte("2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:01Z stdout F two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (host{a}).WriteStatus(t.Context(), podjob.Status{Ended: true}); err != nil {
		t.Fatal(err)
	}
	log, err := c.Logs(t.Context(), "main", api.ContainerLogOpts{Tail: 1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var text strings.Builder
	buffer := make([]byte, 100)
	for err == nil {
		var n int
		n, err = log.Read(buffer)
		text.Write(buffer[:n])
	}
	if text.String() != "two\n" {
		t.Errorf("the log is %q, %v", &text, err)
	}
}

// TestMachineGetsTheImagesOfItsPod: the node sends only these images, or the error of the registry.
func TestMachineGetsTheImagesOfItsPod(t *testing.T) {
	at := authority(t)
	said := make(chan string, 3)
	a, err := NewAgent(AgentConfig{UserData: at.UserData("m1", "", time.Hour, 0), Dir: t.TempDir(), PowerOff: func(string) {}, Run: func(ctx context.Context, c podjob.Config) error {
		for _, name := range []string{"mine", "missing", "others"} {
			of, files, err := c.Pull(ctx, name, podjob.Login{Username: "u"})
			if err != nil {
				said <- status.Code(err).String() + " " + err.Error()
				continue
			}
			text, err := io.ReadAll(files)
			said <- fmt.Sprint(of.ID, string(text), err, files.Close())
		}
		<-ctx.Done()
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	address, _ := serve(t, a)
	c := joined(t, at, "m1", address)
	c.ServeImages(func(_ context.Context, image string, l podjob.Login) (podjob.Image, io.ReadCloser, error) {
		if image == "missing" {
			return podjob.Image{}, nil, status.Error(codes.NotFound, "no such image, "+l.Username)
		}
		return podjob.Image{ID: "1"}, io.NopCloser(strings.NewReader("files")), nil
	}, func(image string) bool { return image != "others" })
	if err := c.Give(t.Context(), bundle("u1")); err != nil {
		t.Fatal(err)
	}
	watched(t, c)
	for _, want := range []string{"1files<nil> <nil>", "NotFound rpc error: code = NotFound desc = no such image, u", "PermissionDenied rpc error: code = PermissionDenied desc = image others does not belong to the pod"} {
		if got := <-said; got != want {
			t.Errorf("the machine gets %q, want %q", got, want)
		}
	}
}

// TestCertificateOfAMachineIsRenewed: a pod may run for longer than its machine's certificate is valid.
func TestCertificateOfAMachineIsRenewed(t *testing.T) {
	at := authority(t)
	a := agent(t, at.UserData("m1", "", time.Hour, 0), t.TempDir())
	address, _ := serve(t, a)
	joined(t, at, "m1", address)
	old, err := at.signKey(a.cert.Leaf.PublicKey, machineName("m1"), x509.ExtKeyUsageServerAuth, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.takeCertificate(old.Raw); err != nil {
		t.Fatal(err)
	}
	c := at.Client("m1", address)
	t.Cleanup(c.Close)
	await(t, watched(t, c), func(State) bool { return true })
	a.mu.Lock()
	left := time.Until(a.cert.Leaf.NotAfter)
	a.mu.Unlock()
	if left < machineLife/2 {
		t.Errorf("the certificate is good for %s", left)
	}
}

// TestExpiredCertificateIsSignedAgain: after an absence longer than a certificate's validity, the node recognizes the machine by its key.
func TestExpiredCertificateIsSignedAgain(t *testing.T) {
	at := authority(t)
	a := agent(t, at.UserData("m1", "", time.Hour, 0), t.TempDir())
	address, _ := serve(t, a)
	joined(t, at, "m1", address)
	old, err := at.signKey(a.cert.Leaf.PublicKey, machineName("m1"), x509.ExtKeyUsageServerAuth, -time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.takeCertificate(old.Raw); err != nil {
		t.Fatal(err)
	}
	c := at.Client("m1", address)
	defer c.Close()
	record := func(context.Context, string) error {
		t.Error("its key is recorded again")
		return nil
	}
	if err := c.Join(t.Context(), fingerprint([]byte("another")), record); !errors.Is(err, ErrStranger) {
		t.Errorf("another key was signed: %v", err)
	}
	if err := c.Join(t.Context(), fingerprint(old.RawSubjectPublicKeyInfo), record); err != nil {
		t.Fatal(err)
	}
	if err := c.Give(t.Context(), bundle("u1")); err != nil {
		t.Errorf("after it was signed again: %v", err)
	}
}

// watchedMachine answers a watch with lines. It returns the number of concurrent image pulls, and the error of Watch.
func watchedMachine(t *testing.T, lines io.Reader) (pulls int64, err error) {
	t.Helper()
	at := authority(t)
	a := agent(t, at.UserData("m1", "", time.Hour, 0), t.TempDir())
	address, end := serve(t, a)
	joined(t, at, "m1", address)
	end()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: callTime, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*a.cert}}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathWatch {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		conn, _, err := upgradeConnection(w)
		if err == nil {
			_, _ = io.Copy(conn, lines)
			_ = conn.Close()
		}
	})}
	var serves sync.WaitGroup
	serves.Go(func() { _ = server.ServeTLS(l, "", "") }) // a closed server always returns an error
	t.Cleanup(func() {
		_ = server.Close()
		serves.Wait()
	})
	c := at.Client("m1", l.Addr().String())
	t.Cleanup(c.Close)
	var count atomic.Int64
	c.ServeImages(func(ctx context.Context, _ string, _ podjob.Login) (podjob.Image, io.ReadCloser, error) {
		count.Add(1)
		<-ctx.Done()
		return podjob.Image{}, nil, ctx.Err()
	}, func(string) bool { return true })
	err = c.Watch(t.Context(), func(State) {})
	return count.Load(), err
}

// TestMachineCannotFillTheNode: neither an endless line nor endless wants of images exhaust the node.
func TestMachineCannotFillTheNode(t *testing.T) {
	endless := io.LimitReader(zeros{}, 4*maxAnswer)
	if _, err := watchedMachine(t, endless); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("a line without an end: %v", err)
	}
	var lines strings.Builder
	for i := range 10 * maxImagesSent {
		fmt.Fprintf(&lines, "{\"wants\":[{\"id\":\"%d\",\"image\":\"i\"}]}\n", i)
	}
	if n, err := watchedMachine(t, strings.NewReader(lines.String())); n != maxImagesSent {
		t.Errorf("wants without a number: %d pulls at a time, want %d: %v", n, maxImagesSent, err)
	}
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestSecondSenderOfAnImageEnds: after a new connection, the node may send an image again. It detects that the first transfer was sufficient.
func TestSecondSenderOfAnImageEnds(t *testing.T) {
	a := agent(t, authority(t).UserData("m1", "", time.Hour, 0), t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		a.changed = make(chan struct{})
		pulled := make(chan io.ReadCloser)
		go func() {
			_, files, err := a.pullImage(t.Context(), "i", podjob.Login{})
			if err != nil {
				t.Error(err)
			}
			pulled <- files
		}()
		synctest.Wait()
		a.mu.Lock()
		id := a.state.Wants[0].ID
		a.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ends := make(chan error, 2)
		var bodies []*io.PipeWriter
		for range 2 {
			body, to := io.Pipe()
			bodies = append(bodies, to)
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, pathImage+id, body)
			r.SetPathValue("id", id)
			go func() { ends <- a.receiveImage(httptest.NewRecorder(), r) }()
		}
		synctest.Wait() // both senders know the request
		for _, to := range bodies {
			if _, err := to.Write([]byte("{}\n")); err != nil {
				t.Error(err)
			}
		}
		files := <-pulled
		synctest.Wait()
		select {
		case err := <-ends:
			if !errdefs.IsNotFound(err) {
				t.Errorf("the second sender: %v", err)
			}
		default:
			t.Error("the second sender waits on")
			cancel()
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}
