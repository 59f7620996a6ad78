// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"

	openapi "github.com/alibabacloud-go/darabonba-openapi/v2/utils"
	"github.com/alibabacloud-go/tea/dara"
)

// acsVersion is the version of the signer in go.mod.
const acsVersion = "github.com/alibabacloud-go/darabonba-openapi/v2 v2.1.13, utils"

// signACS3 fills the signatures of requests to Alibaba Cloud.
func signACS3() []golden {
	header := func(more ...string) map[string]string {
		h := map[string]string{
			"host": "eci.cn-hangzhou.aliyuncs.com", "x-acs-version": "2018-08-08", "x-acs-date": "2026-01-02T03:04:05Z",
			"x-acs-signature-nonce": "0123456789abcdef", "accept": "application/json", "user-agent": "golden",
		}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	const form = "application/x-www-form-urlencoded"
	cases := []golden{
		{Name: "list", Method: "POST", Path: "/", Header: header("x-acs-action", "DescribeContainerGroups")},
		{Name: "create", Method: "POST", Path: "/", Header: header("x-acs-action", "CreateContainerGroup", "content-type", form),
			Body: "Container.1.Arg.1=echo+%22a%2Bb%22&Container.1.Name=web&RegionId=cn-hangzhou"},
		{Name: "temporary key", Method: "POST", Path: "/", Header: header("x-acs-action", "DescribeContainerGroups", "x-acs-security-token", "temporary", "x-acs-accesskey-id", "AKEXAMPLE")},
		{Name: "query", Method: "GET", Path: "/", Header: header("x-acs-action", "DescribeContainerLog"),
			Query: map[string][]string{"ContainerName": {"a b+c*d~e"}, "Empty": {""}, "Tail": {"10"}}},
		{Name: "header with spaces around", Method: "POST", Path: "/", Header: header("x-acs-action", "  DescribeRegions  ")},
	}
	for i := range cases {
		c := &cases[i]
		c.Endpoint, c.Access, c.Secret = "https://eci.cn-hangzhou.aliyuncs.com", "AKEXAMPLE", "SKEXAMPLE/+="
		sum := sha256.Sum256([]byte(c.Body))
		c.Header["x-acs-content-sha256"] = hex.EncodeToString(sum[:])
		r := &dara.Request{Method: &c.Method, Pathname: &c.Path, Headers: map[string]*string{}, Query: map[string]*string{}}
		for name, value := range c.Header {
			r.Headers[name] = &value
		}
		for name, values := range c.Query {
			r.Query[name] = &values[0]
		}
		payload, algorithm := c.Header["x-acs-content-sha256"], "ACS3-HMAC-SHA256"
		c.Authorization = *openapi.GetAuthorization(r, &algorithm, &payload, &c.Access, &c.Secret)
	}
	return cases
}
