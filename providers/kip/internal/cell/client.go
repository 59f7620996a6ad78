// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Client is the node's side of one machine. It keeps a connection for a short time after a request, and one as long as Watch runs.
type Client struct {
	authority *Authority
	token     string
	address   string
	known     *http.Client // connections with the machine that has its certificate

	images  podjob.PullFunc
	allowed func(image string) bool

	seen atomic.Pointer[x509.Certificate] // the machine's, as it was shown last
}

// Times of a client.
const (
	callTime    = 30 * time.Second // of a request that is answered at once
	connectTime = 10 * time.Second
	idleTime    = 30 * time.Second
	beatEvery   = 2 * time.Minute
	beatTime    = time.Minute // in which a beat is answered
)

// Client returns the client of the machine that was started with this token and is reached at address, a host with a port.
func (a *Authority) Client(token, address string) *Client {
	c := &Client{authority: a, token: token, address: address}
	c.known = c.over(c.isMachine)
	return c
}

// over is a client of HTTP over TLS whose other side passes check.
func (c *Client) over(check func(tls.ConnectionState) error) *http.Client {
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: machineName(c.token),
		InsecureSkipVerify: true, //nolint:gosec // check does it: a machine begins without a certificate of its authority
		VerifyConnection:   check,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return c.authority.client()
		},
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: connectTime}, Config: config}
	return &http.Client{Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, connectTime)
			defer cancel()
			return dialer.DialContext(ctx, network, c.address)
		},
		IdleConnTimeout: idleTime, MaxIdleConnsPerHost: 1, DisableCompression: true,
	}}
}

// isMachine checks that the other side is the machine, by its certificate.
func (c *Client) isMachine(s tls.ConnectionState) error {
	roots := x509.NewCertPool()
	roots.AddCert(c.authority.cert)
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: machineName(c.token), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	c.seen.Store(s.PeerCertificates[0])
	return nil
}

// renewCertificate signs the key of the machine again when half of the life of its certificate is over.
func (c *Client) renewCertificate(ctx context.Context) error {
	old := c.seen.Load()
	if old == nil || time.Until(old.NotAfter) > machineLife/2 {
		return nil
	}
	var answer joinAnswer
	if err := c.call(ctx, c.known, http.MethodPost, pathJoin, joinRequest{Now: time.Now()}, &answer); err != nil {
		return err
	}
	cert, err := c.authority.signRequest(c.token, answer.Request, old.RawSubjectPublicKeyInfo)
	if err != nil {
		return err
	}
	if err := c.call(ctx, c.known, http.MethodPost, pathSigned, signed{cert.Raw}, nil); err != nil {
		return err
	}
	c.seen.Store(cert)
	return nil
}

// Close ends the connections that no request uses.
func (c *Client) Close() { c.known.CloseIdleConnections() }

// Join has the machine trust the node, and the node the machine. A machine is signed once: signedBefore is the fingerprint of the key that was signed for it,
// "" for none, and record keeps the fingerprint of a new one before the machine gets its certificate. A machine that has its certificate is left as it is, and the key
// of an expired certificate is signed again.
func (c *Client) Join(ctx context.Context, signedBefore string, record func(ctx context.Context, fingerprint string) error) error {
	var key []byte
	var is error
	first := c.over(func(s tls.ConnectionState) error {
		if is = c.isMachine(s); is == nil {
			return nil
		}
		key = s.PeerCertificates[0].RawSubjectPublicKeyInfo // the proof says whose it is
		return nil
	})
	first.Transport.(*http.Transport).MaxConnsPerHost = 1 // the key is that of one connection
	defer first.CloseIdleConnections()
	nonce := make([]byte, 32)
	_, _ = rand.Read(nonce) // it never fails
	var answer joinAnswer
	if err := c.call(ctx, first, http.MethodPost, pathJoin, joinRequest{nonce, time.Now()}, &answer); err != nil {
		return err
	}
	if is == nil {
		return nil
	}
	print := fingerprint(key)
	switch {
	case signedBefore == print: // its certificate has expired, or did not reach it; the connection proves that it has the key
	case signedBefore != "":
		return fmt.Errorf("%w: another key was signed for the machine before", ErrStranger)
	case !hmac.Equal(answer.Proof, proof(c.authority.secretOf(c.token), nonce, key)):
		return fmt.Errorf("%w: it does not know the secret of the machine", ErrStranger)
	}
	cert, err := c.authority.signRequest(c.token, answer.Request, key)
	if err != nil {
		return err
	}
	if signedBefore == "" {
		if err := record(ctx, print); err != nil {
			return fmt.Errorf("record the key of the machine: %w", err)
		}
	}
	return c.call(ctx, first, http.MethodPost, pathSigned, signed{cert.Raw}, nil)
}

// Give gives the machine its pod. It is no error to give it again. ErrTaken: the machine has another one.
func (c *Client) Give(ctx context.Context, b podjob.Bundle) error {
	return c.call(ctx, c.known, http.MethodPost, pathPod, b, nil)
}

// Renew gives the pod of the machine new objects, tokens and logins.
func (c *Client) Renew(ctx context.Context, b podjob.Bundle) error {
	return c.call(ctx, c.known, http.MethodPut, pathPod, b, nil)
}

// Stop has the pod of the machine stopped. The machine itself goes on until it is ended.
func (c *Client) Stop(ctx context.Context, grace time.Duration) error {
	return c.call(ctx, c.known, http.MethodPost, pathStop, stopOrder{GraceSeconds: int64(grace / time.Second)}, nil)
}

// Stats returns what the pod uses.
func (c *Client) Stats(ctx context.Context) (s statsv1alpha1.PodStats, err error) {
	return s, c.call(ctx, c.known, http.MethodGet, pathStats, nil, &s)
}

// Logs returns the log of a container.
func (c *Client) Logs(ctx context.Context, container string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	text, err := json.Marshal(opts)
	if err != nil {
		return nil, err
	}
	answer, err := c.send(ctx, c.known, http.MethodGet, pathLogs+"?"+url.Values{"container": {container}, "options": {string(text)}}.Encode(), nil, false)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// Stream does in the pod what req asks for: see podjob.Stream.
func (c *Client) Stream(ctx context.Context, req podjob.Request, e podjob.Ends) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := c.upgrade(ctx, pathStream)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err = podjob.Stream(ctx, conn, conn, req, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Watch calls changed with the state of the machine, and at each change, until ctx ends, which is no error, or the connection does.
func (c *Client) Watch(ctx context.Context, changed func(State)) error {
	conn, err := c.upgrade(ctx, pathWatch)
	if err != nil {
		return err
	}
	if err := c.renewCertificate(ctx); err != nil {
		return errors.Join(fmt.Errorf("renew the certificate of the machine: %w", err), conn.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	silent := time.AfterFunc(beatEvery+beatTime, func() { _ = conn.Close() })
	defer silent.Stop()
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { c.beat(ctx, conn) })
	defer func() {
		cancel()
		_ = conn.Close()
		beside.Wait()
	}()
	asked := map[string]bool{}                 // wants of the last state
	room := make(chan struct{}, maxImagesSent) // holds a value for each image that is sent
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxAnswer)
	for {
		err := io.EOF
		if lines.Scan() {
			err = nil
		} else if lines.Err() != nil {
			err = lines.Err()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !silent.Stop():
			return fmt.Errorf("watch the machine: it has said nothing for %s", beatEvery+beatTime)
		case err != nil:
			return fmt.Errorf("watch the machine: %w", err)
		}
		silent.Reset(beatEvery + beatTime)
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var s State
		if err := json.Unmarshal(line, &s); err != nil {
			return fmt.Errorf("read the state of the machine: %w", err)
		}
		wanted := map[string]bool{}
		for _, w := range s.Wants {
			if wanted[w.ID] = asked[w.ID]; wanted[w.ID] {
				continue
			}
			select {
			case room <- struct{}{}:
				wanted[w.ID] = true
				beside.Go(func() {
					defer func() { <-room }()
					c.sendImage(ctx, w)
				})
			default: // it is looked at again with the next state, which each image causes
			}
		}
		asked = wanted
		changed(s)
	}
}

// beat tells the machine at times that it is wanted.
func (c *Client) beat(ctx context.Context, conn io.Writer) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if _, err := conn.Write([]byte{'\n'}); err != nil {
				return // the reader of the connection says why
			}
			_ = c.renewCertificate(ctx) // it is tried again at the next one, for days
		}
	}
}

// upgrade returns a connection with an operation of the machine.
func (c *Client) upgrade(ctx context.Context, path string) (io.ReadWriteCloser, error) {
	answer, err := c.send(ctx, c.known, http.MethodPost, path, nil, true)
	if err != nil {
		return nil, err
	}
	conn, ok := answer.Body.(io.ReadWriteCloser)
	if !ok || answer.StatusCode != http.StatusSwitchingProtocols {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: the machine answers %s, want a stream", path, answer.Status)
	}
	return conn, nil
}

// call does a request that is answered at once, and reads the answer into out unless that is nil.
func (c *Client) call(ctx context.Context, over *http.Client, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := c.send(ctx, over, method, path, in, false)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	} else {
		err = json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(out)
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	}
	if err != nil {
		return fmt.Errorf("read the answer of the machine to %s: %w", path, err)
	}
	return nil
}

// maxAnswer bounds an answer: a machine may say anything.
const maxAnswer = 4 << 20

// maxImagesSent bounds how many images a machine gets at a time, for the same reason. A pod pulls fewer.
const maxImagesSent = 64

// send sends a request. An answer that refuses it is an error of its kind.
func (c *Client) send(ctx context.Context, over *http.Client, method, path string, in any, upgrade bool) (*http.Response, error) {
	body, ok := in.(io.Reader)
	if in != nil && !ok {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+machineName(c.token)+path, body)
	if err != nil {
		return nil, err
	}
	if upgrade {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", upgradeTo)
	}
	answer, err := over.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask the machine at %s: %w", c.address, errors.Unwrap(err)) // the rest is its name
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return answer, nil
	}
	defer answer.Body.Close()
	var said refusal
	if json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&said) != nil || said.Message == "" {
		said.Message = "it answers " + answer.Status
	}
	switch answer.StatusCode {
	case http.StatusConflict:
		return nil, fmt.Errorf("%w: %s", ErrTaken, said.Message)
	case http.StatusPreconditionRequired:
		return nil, fmt.Errorf("%w: %s", ErrNoPod, said.Message)
	case http.StatusBadRequest:
		return nil, errdefs.InvalidInput(said.Message)
	case http.StatusNotFound:
		return nil, errdefs.NotFound(said.Message)
	}
	return nil, errors.New(said.Message)
}

// ServeImages has Watch send the images that the machine wants and that are allowed, which pull gets. Without it a machine gets none. A machine may
// be in the hands of its pod: allow the images of its pod alone.
func (c *Client) ServeImages(pull podjob.PullFunc, allowed func(image string) bool) {
	c.images, c.allowed = pull, allowed
}

// sendImage sends an image that the machine wants, or why it gets none.
func (c *Client) sendImage(ctx context.Context, w Want) {
	var head imageHead
	var files io.ReadCloser
	err := status.Errorf(codes.PermissionDenied, "image %s does not belong to the pod", w.Image)
	if c.images != nil && c.allowed(w.Image) {
		head.Image, files, err = c.images(ctx, w.Image, w.Login)
	}
	if err != nil {
		head.Code, head.Error = status.Code(err), status.Convert(err).Message()
	}
	line, err := json.Marshal(head)
	if err != nil {
		return // it is made of strings
	}
	out, in := io.Pipe()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := in.Write(append(line, '\n'))
		if err == nil && files != nil {
			_, err = io.Copy(in, files)
		}
		_ = in.CloseWithError(err)
	}()
	defer func() {
		_ = out.CloseWithError(errors.New("the machine reads no more"))
		<-sent
		if files != nil {
			_ = files.Close()
		}
	}()
	answer, err := c.send(ctx, c.known, http.MethodPost, pathImage+w.ID, out, false)
	if err == nil { // else the machine has given up waiting, or the watch ends, too
		_ = answer.Body.Close()
	}
}
