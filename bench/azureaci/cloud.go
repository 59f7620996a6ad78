// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// These are the hosts of Azure, and the identity of the agents there.
const (
	manager, authority                   = "management.azure.com", "login.microsoftonline.com"
	subscription, resourceGroup, region  = "00000000-0000-4000-8000-000000000001", "pods", "westeurope"
	tenant, clientID, secret             = "00000000-0000-4000-8000-000000000002", "00000000-0000-4000-8000-000000000003", "secret"
	vnet, subnet                         = "net", "pods"
	subnetID                             = "/subscriptions/" + subscription + "/resourceGroups/" + resourceGroup + "/providers/Microsoft.Network/virtualNetworks/" + vnet + "/subnets/" + subnet
	peerVersion                          = "2022-10-01-preview"
	late, pageSize, readHeader, certLife = 200 * time.Millisecond, 500, 10 * time.Second, 24 * time.Hour
)

// cloud is an emulator of ACI behind a proxy that ends TLS for the hosts of Azure, and on an address of its own.
type cloud struct {
	front         *emulator.Front
	proxy, caFile string
	stop          func()
}

// handed is a listener for connections that a proxy passes on.
type handed struct {
	conns chan net.Conn
	ended chan struct{}
}

// Accept implements net.Listener.
func (h handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.ended:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h handed) Close() error { return nil }

// Addr implements net.Listener.
func (h handed) Addr() net.Addr { return &net.TCPAddr{} }

func startCloud(dir string) (*cloud, error) {
	ctx, cancel := context.WithCancel(context.Background())
	runner := inprocess.Open(inprocess.New(ctx), inprocess.Objects{})
	fleet := emulator.NewFleet(runner, &emulator.Objects{}, late)
	runner.NotifyPods(ctx, fleet.Report)
	ran := make(chan struct{})
	go func() { _ = runner.RunInBackground(ctx); close(ran) }()
	server := aci.New(fleet, aci.Place{Subscription: subscription, ResourceGroup: resourceGroup, Region: region}, aci.Principal{Tenant: tenant, Client: clientID, Secret: secret})
	server.Audiences.Manager, server.Versions = []string{"https://" + manager, "https://management.core.windows.net"}, []string{peerVersion} // both are Azure's
	server.ReadOnly = true
	server.Subnets, server.Page, server.Grace = []string{subnetID}, pageSize, 1
	front := emulator.NewFront(aci.Operation, server)
	certificate, caFile, err := makeCertificate(dir)
	if err != nil {
		cancel()
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		return nil, err
	}
	quiet := log.New(io.Discard, "", 0)
	inside := handed{make(chan net.Conn), make(chan struct{})}
	azure := &http.Server{Handler: front, TLSConfig: certificate, ReadHeaderTimeout: readHeader, ErrorLog: quiet}
	proxy := &http.Server{ReadHeaderTimeout: readHeader, ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Host)
		if r.Method != http.MethodConnect || host != manager && host != authority {
			http.Error(w, "this is a proxy for Azure", http.StatusForbidden)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			conn.Close()
			return
		}
		select {
		case inside.conns <- conn:
		case <-inside.ended:
			conn.Close()
		}
	})}
	served := make(chan struct{}, 2)
	go func() { _ = azure.ServeTLS(inside, "", ""); served <- struct{}{} }()
	go func() { _ = proxy.Serve(l); served <- struct{}{} }()
	return &cloud{front: front, proxy: "http://" + l.Addr().String(), caFile: caFile, stop: func() {
		close(inside.ended)
		_ = errors.Join(proxy.Close(), azure.Close())
		<-served
		<-served
		cancel()
		<-ran
	}}, nil
}

// makeCertificate makes a certificate for the hosts of Azure, which is self-signed.
func makeCertificate(dir string) (*tls.Config, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	of := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "emulator"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certLife),
		DNSNames: []string{manager, authority}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "azure.pem")
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, file,
		os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}
