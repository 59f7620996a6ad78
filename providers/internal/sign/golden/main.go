// SPDX-License-Identifier: Apache-2.0

// Command golden writes signatures of the vendors' own signers, for the tests of package sign:
//
//	go run . ../testdata
//
// It is a module of its own so that nothing else needs the vendors' SDKs.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/huaweicloud/huaweicloud-sdk-go-v3/core/auth/signer"
	"github.com/huaweicloud/huaweicloud-sdk-go-v3/core/request"
)

// version is the version of the SDK in go.mod.
const version = "github.com/huaweicloud/huaweicloud-sdk-go-v3 v0.1.207, core/auth/signer"

// golden is a request and its signature.
type golden struct {
	Name          string              `json:"name"`
	Method        string              `json:"method"`
	Endpoint      string              `json:"endpoint"`
	Path          string              `json:"path"`
	Query         map[string][]string `json:"query,omitempty"`
	Header        map[string]string   `json:"header"`
	Body          string              `json:"body,omitempty"`
	Access        string              `json:"access"`
	Secret        string              `json:"secret"`
	Authorization string              `json:"authorization"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: golden FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string) error {
	const endpoint = "https://cci.cn-north-4.myhuaweicloud.com"
	pods := "/apis/cci/v2/namespaces/home-1/pods"
	header := func(more ...string) map[string]string {
		h := map[string]string{"host": "cci.cn-north-4.myhuaweicloud.com", "X-Sdk-Date": "20260102T030405Z"}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	cases := []golden{
		{Name: "list", Method: "GET", Path: pods, Header: header()},
		{Name: "list of labels", Method: "GET", Path: pods, Header: header("X-Project-Id", "0123456789abcdef"),
			Query: map[string][]string{"labelSelector": {"a/b=c,d in (e f)"}, "watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"300"}}},
		{Name: "create", Method: "POST", Path: pods, Header: header("X-Project-Id", "0123456789abcdef", "X-Security-Token", "temporary"),
			Body: `{"apiVersion":"cci/v2","kind":"Pod","metadata":{"name":"web-0"}}`},
		{Name: "exec", Method: "GET", Path: pods + "/web-0/exec", Header: header(),
			Query: map[string][]string{"command": {"sh", "-c", "echo 'a+b' & ls ~/*.go; printf %s ü"}, "stdout": {"true"}, "container": {""}}},
		{Name: "values whose order escapes would change", Method: "GET", Path: pods + "/web-0/exec", Header: header(),
			Query: map[string][]string{"command": {"program", "{}", "Z"}}},
		{Name: "slash at the end", Method: "DELETE", Path: pods + "/web-0/", Header: header()},
		{Name: "path that needs escapes", Method: "GET", Path: "/api/v1/a b/c+d:e@f/g~h", Header: header()},
		{Name: "root", Method: "GET", Path: "/", Header: header()},
		{Name: "header with spaces around", Method: "GET", Path: pods, Header: header("X-Project-Id", "  p  ")},
	}
	for i := range cases {
		c := &cases[i]
		c.Endpoint, c.Access, c.Secret = endpoint, "AKEXAMPLE", "SKEXAMPLE/+="
		b := request.NewHttpRequestBuilder().WithMethod(c.Method).WithEndpoint(c.Endpoint).WithPath(c.Path)
		for name, values := range c.Query {
			b.AddQueryParam(name, reflect.ValueOf(values))
		}
		for name, value := range c.Header {
			b.AddHeaderParam(name, value)
		}
		if c.Body != "" {
			b.WithBody("body", json.RawMessage(c.Body))
		}
		r := b.Build()
		sent, err := r.GetBodyToBytes()
		if err != nil {
			return err
		}
		c.Body = sent.String()
		got, err := signer.Sign(r, c.Access, c.Secret)
		if err != nil {
			return err
		}
		c.Authorization = got["Authorization"]
	}
	if err := write(filepath.Join(folder, "golden.json"), version, cases); err != nil {
		return err
	}
	return write(filepath.Join(folder, "acs3.json"), acsVersion, signACS3())
}

func write(path, source string, cases []golden) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := json.NewEncoder(f)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return errors.Join(out.Encode(struct {
		Source string   `json:"source"`
		Made   string   `json:"made"`
		Cases  []golden `json:"cases"`
	}{source, "2026-11-23", cases}), f.Close())
}
