// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// formType is the content type of the older protocol of EC2 and IAM.
const formType = "application/x-www-form-urlencoded"

// versions are the services of this protocol, by the version of their description.
var versions = map[string]string{"2016-11-15": "ec2", "2010-05-08": "iam"}

// formTarget returns the service and the operation of a form.
func formTarget(body []byte) (service, operation string) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", ""
	}
	return versions[form.Get("Version")], form.Get("Action")
}

// formBody converts a form to an object: NAME.1 is the first item of a list.
func formBody(body []byte) ([]byte, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name, values := range form {
		if name == "Action" || name == "Version" {
			continue
		}
		list, n, ok := strings.Cut(name, ".")
		if !ok {
			out[name] = values[0]
			continue
		}
		if n == "" || strings.Trim(n, "0123456789") != "" {
			return nil, fmt.Errorf("%s: this server reads lists of texts alone", name)
		}
		so, _ := out[list].([]any)
		out[list] = append(so, values[0])
	}
	return json.Marshal(out)
}

// answerXML answers in the form of the older protocol. EC2 has names of its own for parts of an answer.
func answerXML(w http.ResponseWriter, service string, out any, err error) {
	w.Header().Set("Content-Type", "text/xml")
	if err == nil {
		_ = xml.NewEncoder(w).Encode(out)
		return
	}
	said := refusal{"InternalFailure", err.Error()}
	status := http.StatusBadRequest
	if !errors.As(err, &said) {
		status = http.StatusInternalServerError
	}
	code := said.code
	if own := map[string]map[string]string{
		"ec2": {"AccessDeniedException": "UnauthorizedOperation", "UnrecognizedClientException": "AuthFailure", "InvalidSignatureException": "AuthFailure", "ExpiredTokenException": "RequestExpired"},
		"iam": {"AccessDeniedException": "AccessDenied", "UnrecognizedClientException": "InvalidClientTokenId", "InvalidSignatureException": "SignatureDoesNotMatch", "ExpiredTokenException": "ExpiredToken"},
	}[service][code]; own != "" {
		code = own
	}
	type problem struct{ Code, Message string }
	w.WriteHeader(status)
	if service == "ec2" {
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName xml.Name `xml:"Response"`
			Errors  struct{ Error problem }
		}{Errors: struct{ Error problem }{problem{code, said.message}}})
		return
	}
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName xml.Name `xml:"ErrorResponse"`
		Error   problem
	}{Error: problem{code, said.message}})
}

type subnets struct {
	XMLName xml.Name `xml:"DescribeSubnetsResponse"`
	Items   []struct {
		SubnetID string `xml:"subnetId"`
		VPC      string `xml:"vpcId"`
	} `xml:"subnetSet>item"`
}

func (s *Server) describeSubnets(body []byte) (any, error) {
	var in struct {
		SubnetID []string `json:"SubnetId"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	out := subnets{}
	for _, id := range in.SubnetID {
		if isMissing(s.config.Subnets, id) {
			return nil, refusal{"InvalidSubnetID.NotFound", "The subnet ID '" + id + "' does not exist"}
		}
		out.Items = append(out.Items, struct {
			SubnetID string `xml:"subnetId"`
			VPC      string `xml:"vpcId"`
		}{id, "vpc-1"})
	}
	return out, nil
}

func (s *Server) describeSecurityGroups(body []byte) (any, error) {
	var in struct {
		GroupID []string `json:"GroupId"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	for _, id := range in.GroupID {
		if isMissing(s.config.SecurityGroups, id) {
			return nil, refusal{"InvalidGroup.NotFound", "The security group '" + id + "' does not exist"}
		}
	}
	return struct {
		XMLName xml.Name `xml:"DescribeSecurityGroupsResponse"`
	}{}, nil
}

// isMissing reports whether one is not in all; a nil list contains everything.
func isMissing(all []string, one string) bool { return all != nil && !slices.Contains(all, one) }

func (s *Server) getRole(body []byte) (any, error) {
	var in struct{ RoleName string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if isMissing(s.config.Roles, in.RoleName) {
		return nil, refusal{"NoSuchEntity", "The role with name " + in.RoleName + " cannot be found."}
	}
	trusts := "ecs-tasks.amazonaws.com"
	if strings.HasPrefix(in.RoleName, "strange") {
		trusts = "ec2.amazonaws.com"
	}
	type role struct {
		RoleName, AssumeRolePolicyDocument string
	}
	return struct {
		XMLName xml.Name `xml:"GetRoleResponse"`
		Role    role     `xml:"GetRoleResult>Role"`
	}{Role: role{in.RoleName, url.QueryEscape(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + trusts + `"},"Action":"sts:AssumeRole"}]}`)}}, nil
}

func (s *Server) getServiceQuota(body []byte) (any, error) {
	var in struct{ ServiceCode, QuotaCode string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.ServiceCode != "fargate" {
		return nil, refusal{"NoSuchResourceException", "The specified resource does not exist."}
	}
	return map[string]any{"Quota": map[string]any{"ServiceCode": in.ServiceCode, "QuotaCode": in.QuotaCode, "Value": float64(s.config.VCPUs)}}, nil
}
