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

// want receives an image. The channel over closes when the image has arrived, or no caller waits for it any longer.
type want struct {
	arrives chan *arrival
	over    chan struct{}
}

// arrival is an image from the node.
type arrival struct {
	head  imageHead
	files io.Reader
	taken chan struct{} // closed when no caller reads the files any longer
}

// AgentConfig configures an Agent.
type AgentConfig struct {
	// UserData is the user data of the machine. Required.
	UserData UserData
	// Dir has the state of the agent for its next start, and the logs of the pod. Required.
	Dir string
	// Version is the version of the agent.
	Version string
	// Run runs the pod: podjob.Run, except in simulated machines. Required.
	Run func(ctx context.Context, c podjob.Config) error
	// PowerOff ends the machine. Serve returns afterwards. Required.
	PowerOff func(why string)
	// SetClock sets the machine's clock to the time of the node. Default: the clock stays unchanged.
	SetClock func(now time.Time)
	// Stats measures the pod. Default: the agent has no statistics.
	Stats func() (statsv1alpha1.PodStats, error)
	// SetServices makes cluster IPs of Services lead to their endpoints, and no others. Default: the agent refuses Services.
	SetServices func(Services) error
	// Job configures the pod's process, except for the fields that the agent sets. Default: the defaults of podjob.
	Job podjob.Config
}

// Agent is the machine's side of the protocol.
type Agent struct {
	config AgentConfig
	roots  *x509.CertPool
	given  chan struct{} // closed when the machine has a pod
	wake   chan struct{} // wakes the pod's process to look for a stop order
	conns  chan net.Conn // streams for the pod

	streams sync.WaitGroup // running watches; the server does not track their connections

	mu      sync.Mutex
	kept    kept             // guarded by mu, as all below
	cert    *tls.Certificate // self-signed until the node has signed the key
	bundle  podjob.Bundle
	stop    *podjob.Stop
	state   State
	wanted  map[string]want // by the ID of the Want
	changed chan struct{}   // closed at the next change
	heard   time.Time       // when a node last contacted the agent
}

// kept is the state that the agent saves on disk.
type kept struct {
	UserData    UserData
	Key         []byte // in PKCS #8
	Certificate []byte // from the node; nil before the node has signed the key
}

// Files of an agent.
const (
	keptFile   = "agent.json"
	bundleFile = "pod.json"
	statusFile = "status.json"
	claimFile  = "claimed"
	logDir     = "logs"
)

// NewAgent returns the agent of a machine. After a restart, it continues with the state in Dir.
func NewAgent(c AgentConfig) (*Agent, error) {
	a := &Agent{
		config: c, given: make(chan struct{}), wake: make(chan struct{}, 1), conns: make(chan net.Conn),
		changed: make(chan struct{}), heard: time.Now(), wanted: map[string]want{}, state: State{Version: c.Version}, roots: x509.NewCertPool(),
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	err := a.readState(keptFile, &a.kept)
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
		err = a.writeState(keptFile, a.kept)
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
	if err := a.loadPod(); err != nil {
		return nil, err
	}
	return a, nil
}

// loadPod loads the pod that the machine received before the agent restarted.
func (a *Agent) loadPod() error {
	err := a.readState(bundleFile, &a.bundle)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	a.state.Pod = a.bundle.Pod.UID
	var s podjob.Status
	switch err := a.readState(statusFile, &s); {
	case err == nil:
		a.state.Status = &s
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	close(a.given)
	return nil
}

func (a *Agent) readState(name string, v any) error {
	data, err := os.ReadFile(filepath.Join(a.config.Dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(a.config.Dir, name), err)
	}
	return nil
}

// writeState replaces a file atomically.
func (a *Agent) writeState(name string, v any) error {
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

// useKey makes the TLS certificate from the saved key. The caller holds mu, or is the only user of the agent.
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
		template := &x509.Certificate{SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "not joined"}, NotBefore: time.Now().Add(-clockError), NotAfter: time.Now().Add(authorityLife)}
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

// awaitOrphan waits until no node has contacted the machine for too long, and returns the reason. It returns "" if ctx ends first.
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

// recordContact records contact by a node.
func (a *Agent) recordContact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = time.Now()
}

// Interrupt records that the cloud takes the machine away soon.
func (a *Agent) Interrupt(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Interrupted != why {
		a.state.Interrupted = why
		a.wakeWatchers()
	}
}

// wakeWatchers wakes the watchers after a change. The caller holds mu.
func (a *Agent) wakeWatchers() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// requestCertificate returns a certificate request. Before the machine has a certificate, it also returns a proof that the key is the machine's own.
func (a *Agent) requestCertificate(nonce []byte) (joinAnswer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: a.kept.UserData.Token}}, a.cert.PrivateKey)
	if err != nil {
		return joinAnswer{}, fmt.Errorf("make the request for a certificate: %w", err)
	}
	if a.kept.Certificate != nil {
		return joinAnswer{Request: der}, nil // the certificate is the proof
	}
	return joinAnswer{Proof: proveSecret(a.kept.UserData.Secret, nonce, a.cert.Leaf.RawSubjectPublicKeyInfo), Request: der}, nil
}

// takeCertificate saves the certificate from the node, and drops the secret, which is no longer needed.
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
	if err := a.writeState(keptFile, next); err != nil {
		return err
	}
	a.kept = next
	return a.useKey()
}

// takePod saves the pod of the machine. It returns ErrTaken if the machine has, or is for, another pod.
func (a *Agent) takePod(b podjob.Bundle) error {
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
	if err := a.writeState(bundleFile, b); err != nil {
		return err
	}
	a.bundle, a.state.Pod = b, b.Pod.UID
	close(a.given)
	a.wakeWatchers()
	return nil
}

// renewPod replaces the bundle of the pod. It returns ErrNoPod before the machine has a pod.
func (a *Agent) renewPod(b podjob.Bundle) error {
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
	if err := a.writeState(bundleFile, b); err != nil {
		return err
	}
	a.bundle = b
	return nil
}

// orderStop orders the stop of the pod. A shorter grace period replaces a longer one.
func (a *Agent) orderStop(graceSeconds int64) error {
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
