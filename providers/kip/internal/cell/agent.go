// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// want is where an image arrives. It is over when one has arrived, or none is waited for any more.
type want struct {
	arrives chan *arrival
	over    chan struct{}
}

// arrival is an image that the node sends.
type arrival struct {
	head  imageHead
	files io.Reader
	taken chan struct{} // closed when no more of the files is read
}

// AgentConfig is how a machine runs its agent.
type AgentConfig struct {
	// UserData is what the machine was told when it started. Required.
	UserData UserData
	// Dir keeps what an agent must know when it starts again, and the logs of the pod. Required.
	Dir string
	// Version is that of the agent.
	Version string
	// Run runs the pod: podjob.Run, but for machines that are simulated. Required.
	Run func(ctx context.Context, c podjob.Config) error
	// PowerOff ends the machine. Serve returns after it. Required.
	PowerOff func(why string)
	// SetClock sets the clock of the machine by that of the node. Default: it is left as it is.
	SetClock func(now time.Time)
	// Stats measures the pod. Default: nothing is measured.
	Stats func() (statsv1alpha1.PodStats, error)
	// Job is the configuration of the pod's process, but for what the agent sets. Default: that of podjob.
	Job podjob.Config
}

// Agent is the machine's side of the protocol.
type Agent struct {
	config AgentConfig
	roots  *x509.CertPool
	given  chan struct{} // closed when there is a pod
	wake   chan struct{} // the pod is to look for an order to stop
	conns  chan net.Conn // streams for the pod

	streams sync.WaitGroup // watches, which the server does not know any more

	mu      sync.Mutex
	kept    kept             // guarded by mu, as all below
	cert    *tls.Certificate // self-made until the node has signed it
	bundle  podjob.Bundle
	stop    *podjob.Stop
	state   State
	wanted  map[string]want // by the ID of the Want
	changed chan struct{}   // closed at the next change
	heard   time.Time       // when a node spoke last
}

// kept is what the agent keeps on its disk.
type kept struct {
	UserData    UserData
	Key         []byte // in PKCS #8
	Certificate []byte // the one that the node signed; none before
}

// The files of an agent.
const (
	keptFile   = "agent.json"
	bundleFile = "pod.json"
	statusFile = "status.json"
	claimFile  = "claimed"
	logDir     = "logs"
)

// NewAgent makes the agent of a machine. One that starts again knows what it knew.
func NewAgent(c AgentConfig) (*Agent, error) {
	a := &Agent{
		config: c, given: make(chan struct{}), wake: make(chan struct{}, 1), conns: make(chan net.Conn),
		changed: make(chan struct{}), heard: time.Now(), wanted: map[string]want{}, state: State{Version: c.Version}, roots: x509.NewCertPool(),
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	err := a.read(keptFile, &a.kept)
	switch {
	case errors.Is(err, os.ErrNotExist):
		key, keyErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if keyErr != nil {
			return nil, fmt.Errorf("make the key of the machine: %w", keyErr)
		}
		if a.kept.Key, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return nil, fmt.Errorf("write the key of the machine: %w", err)
		}
		a.kept.UserData = c.UserData
		err = a.write(keptFile, a.kept)
	case err == nil && a.kept.UserData.Token != c.UserData.Token && c.UserData.Token != "":
		err = errdefs.InvalidInputf("%s is of machine %s, but the user data say %s: begin with an empty directory", c.Dir, a.kept.UserData.Token, c.UserData.Token)
	}
	if err != nil {
		return nil, err
	}
	if !a.roots.AppendCertsFromPEM([]byte(a.kept.UserData.Authority)) {
		return nil, errdefs.InvalidInput("read the user data: its authority is no certificate in PEM")
	}
	if err := a.useKey(); err != nil {
		return nil, err
	}
	if err := a.resume(); err != nil {
		return nil, err
	}
	return a, nil
}

// resume takes up the pod that the machine was given before the agent started.
func (a *Agent) resume() error {
	err := a.read(bundleFile, &a.bundle)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	a.state.Pod = a.bundle.Pod.UID
	var s podjob.Status
	switch err := a.read(statusFile, &s); {
	case err == nil:
		a.state.Status = &s
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	close(a.given)
	return nil
}

func (a *Agent) read(name string, v any) error {
	data, err := os.ReadFile(filepath.Join(a.config.Dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(a.config.Dir, name), err)
	}
	return nil
}

// write writes a file whole or not at all.
func (a *Agent) write(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	path := filepath.Join(a.config.Dir, name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// useKey makes the certificate from what is kept. The caller holds mu, or is alone.
func (a *Agent) useKey() error {
	key, err := x509.ParsePKCS8PrivateKey(a.kept.Key)
	if err != nil {
		return fmt.Errorf("read the key of the machine: %w", err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return errors.New("read the key of the machine: it is none for ECDSA")
	}
	der := a.kept.Certificate
	if der == nil {
		template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "not joined"}, NotBefore: time.Now().Add(-clockError), NotAfter: time.Now().Add(authorityLife)}
		if der, err = x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private); err != nil {
			return fmt.Errorf("make a certificate: %w", err)
		}
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("read the certificate of the machine: %w", err)
	}
	a.cert = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}
	return nil
}

// awaitOrphan waits until no node has spoken to the machine for too long, and says so; "" if ctx ends before.
func (a *Agent) awaitOrphan(ctx context.Context) string {
	for {
		a.mu.Lock()
		after, what := time.Duration(a.kept.UserData.OrphanAfter)*time.Second, "it runs no pod"
		if a.state.Pod != "" && (a.state.Status == nil || !a.state.Status.Ended) {
			after, what = time.Duration(a.kept.UserData.AbandonedAfter)*time.Second, "its pod is abandoned"
		}
		left, changed := after-time.Since(a.heard), a.changed
		a.mu.Unlock()
		var timer <-chan time.Time
		switch {
		case after <= 0:
		case left <= 0:
			return fmt.Sprintf("no node has spoken to this machine for %s, and %s", after, what)
		default:
			timer = time.After(left)
		}
		select {
		case <-ctx.Done():
			return ""
		case <-timer:
		case <-changed:
		}
	}
}

// hear takes in that a node has spoken.
func (a *Agent) hear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = time.Now()
}

// Interrupt says that the cloud takes the machine away soon.
func (a *Agent) Interrupt(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Interrupted != why {
		a.state.Interrupted = why
		a.publish()
	}
}

// publish tells watchers that there is something new. The caller holds mu.
func (a *Agent) publish() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// join proves that the key is the machine's.
func (a *Agent) join(nonce []byte) (joinAnswer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: a.kept.UserData.Token}}, a.cert.PrivateKey)
	if err != nil {
		return joinAnswer{}, fmt.Errorf("make the request for a certificate: %w", err)
	}
	if a.kept.Certificate != nil {
		return joinAnswer{Request: der}, nil // the certificate is the proof
	}
	return joinAnswer{Proof: proof(a.kept.UserData.Secret, nonce, a.cert.Leaf.RawSubjectPublicKeyInfo), Request: der}, nil
}

// takeCertificate takes the certificate that the node has signed, and drops the secret, which is worth nothing from now on.
func (a *Agent) takeCertificate(der []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return errdefs.AsInvalidInput(fmt.Errorf("read the certificate: %w", err))
	}
	if string(cert.RawSubjectPublicKeyInfo) != string(a.cert.Leaf.RawSubjectPublicKeyInfo) {
		return errdefs.InvalidInput("the certificate is for another key")
	}
	next := a.kept
	next.Certificate, next.UserData.Secret = der, nil
	if err := a.write(keptFile, next); err != nil {
		return err
	}
	a.kept = next
	return a.useKey()
}

// take takes the pod of the machine.
func (a *Agent) take(b podjob.Bundle) error {
	if b.Pod == nil || b.Pod.UID == "" || b.Node == nil {
		return errdefs.InvalidInput("the bundle has no pod with a UID, or no node")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch only := a.kept.UserData.Pod; {
	case a.state.Pod == b.Pod.UID:
		return nil
	case a.state.Pod != "":
		return fmt.Errorf("%w: it has pod %s", ErrTaken, a.state.Pod)
	case only != "" && only != b.Pod.UID:
		return fmt.Errorf("%w: it was started for pod %s", ErrTaken, only)
	}
	if err := a.write(bundleFile, b); err != nil {
		return err
	}
	a.bundle, a.state.Pod = b, b.Pod.UID
	close(a.given)
	a.publish()
	return nil
}

// renew takes what is new of the pod.
func (a *Agent) renew(b podjob.Bundle) error {
	if b.Pod == nil {
		return errdefs.InvalidInput("the bundle has no pod")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.state.Pod {
	case "":
		return ErrNoPod
	case b.Pod.UID:
	default:
		return fmt.Errorf("%w: it has pod %s", ErrTaken, a.state.Pod)
	}
	if err := a.write(bundleFile, b); err != nil {
		return err
	}
	a.bundle = b
	return nil
}

// order has the pod stopped. A shorter grace period takes the place of a longer one.
func (a *Agent) order(graceSeconds int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Pod == "" {
		return ErrNoPod
	}
	if a.stop == nil || graceSeconds < a.stop.GraceSeconds {
		a.stop = &podjob.Stop{GraceSeconds: graceSeconds}
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return nil
}
