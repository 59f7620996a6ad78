// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// chartExample is an example of a provider in the README of the chart.
var chartExample = regexp.MustCompile("(?s)\n### (\\S+)\n.*?\n```yaml\n(.*?)\n```\n")

// door is the login server of a cloud: it exchanges the token of a ServiceAccount for credentials, and refuses all other requests.
type door struct {
	*httptest.Server

	mu      sync.Mutex
	changed []string // guarded by mu; tokens that were exchanged for credentials
	seen    []string // guarded by mu; the Authorization headers of other requests
}

// openDoor starts a door, and returns the file with its certificate authority.
func openDoor(t *testing.T) (*door, string) {
	t.Helper()
	d := &door{}
	d.Server = httptest.NewTLSServer(http.HandlerFunc(d.answer))
	t.Cleanup(d.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return d, file
}

func (d *door) answer(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	_ = r.ParseForm() // a body of another type has no form
	switch {
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		_, _ = fmt.Fprintf(w, `{"issuer": "%[1]s/tenant-1/v2.0", "authorization_endpoint": "%[1]s/authorize", "token_endpoint": "%[1]s/token"}`, d.URL)
	case r.URL.Path == "/token":
		d.changed = append(d.changed, r.Form.Get("client_id")+" "+r.Form.Get("client_assertion"))
		_, _ = w.Write([]byte(`{"token_type": "Bearer", "expires_in": 3600, "access_token": "issued-1"}`))
	case r.Form.Get("Action") == "AssumeRoleWithWebIdentity":
		d.changed = append(d.changed, r.Form.Get("RoleArn")+" "+r.Form.Get("WebIdentityToken"))
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>issued-1</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
			`<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, ends)
	case r.Form.Get("Action") == "AssumeRoleWithOIDC":
		d.changed = append(d.changed, r.Form.Get("RoleArn")+" "+r.Form.Get("OIDCToken"))
		_, _ = fmt.Fprintf(w, `{"Credentials": {"AccessKeyId": "issued-1", "AccessKeySecret": "s", "SecurityToken": "t", "Expiration": "%s"}}`, ends)
	default:
		d.seen = append(d.seen, r.Header.Get("Authorization"))
		http.Error(w, "{}", http.StatusForbidden)
	}
}

// TestProvidersReadTheCredentialsOfTheChart: with each example in the chart's README, a provider sends its service the credentials that the webhook
// of its cloud, or a Secret, gives to the pod.
//
// Sources: github.com/Azure/azure-workload-identity, pkg/webhook/{consts,webhook}.go; github.com/aws/amazon-eks-pod-identity-webhook,
// pkg/handler/handler.go; the vendor's page of ack-pod-identity-webhook (0.4.0).
func TestProvidersReadTheCredentialsOfTheChart(t *testing.T) {
	readme, err := os.ReadFile("../../deploy/helm/virtual-kubelet/README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]string{}
	for _, found := range chartExample.FindAllStringSubmatch(string(readme), -1) {
		examples[found[1]] = found[2]
	}
	for name, tc := range map[string]struct {
		injected map[string]string // TOKEN is the path of a token, and CLOUD the URL of the cloud
		service  []string          // variables with the URL of the cloud, because the example has the vendor's URL
		changed  string            // the token that is exchanged for credentials; "": none
		shown    string            // a pattern of the Authorization header
	}{
		"aci": {
			injected: map[string]string{"AZURE_CLIENT_ID": "client-1", "AZURE_TENANT_ID": "tenant-1", "AZURE_FEDERATED_TOKEN_FILE": "TOKEN", "AZURE_AUTHORITY_HOST": "CLOUD/"},
			service:  []string{"VKUBELET_ACI_CLOUD_ENDPOINT"}, changed: "client-1 token-1", shown: "Bearer issued-1",
		},
		"fargate": {
			injected: map[string]string{"AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/vk", "AWS_WEB_IDENTITY_TOKEN_FILE": "TOKEN", "AWS_STS_REGIONAL_ENDPOINTS": "regional", "AWS_REGION": "us-east-1"},
			service:  []string{"VKUBELET_FARGATE_ENDPOINT"}, changed: "arn:aws:iam::123456789012:role/vk token-1", shown: `Credential=issued-1/\d+/eu-central-1/`,
		},
		"eci": {
			injected: map[string]string{
				"ALIBABA_CLOUD_ROLE_ARN": "acs:ram::1:role/vk", "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": "acs:ram::1:oidc-provider/ack-rrsa-c", "ALIBABA_CLOUD_OIDC_TOKEN_FILE": "TOKEN",
				"ALIBABA_CLOUD_STS_ENDPOINT": "sts-vpc.cn-hangzhou.aliyuncs.com", "ALIBABA_CLOUD_STS_REGION": "cn-hangzhou", "ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED": "true",
			},
			service: []string{"VKUBELET_ECI_ENDPOINT", "VKUBELET_ECI_OIDC_ENDPOINT"}, changed: "acs:ram::1:role/vk token-1", shown: "Credential=issued-1,",
		},
		"huaweicci": {service: []string{"VKUBELET_HUAWEICCI_ENDPOINT"}, shown: "Access=key-1,"},
	} {
		t.Run(name, func(t *testing.T) {
			var values struct {
				Provider, ProviderConfig string
				ProviderSecrets          []string
				ExtraEnv                 []corev1.EnvVar
			}
			if err := yaml.Unmarshal([]byte(examples[name]), &values); err != nil || values.Provider != name {
				t.Fatalf("got %+v, %v", values, err)
			}
			cloud, caFile := openDoor(t)
			dir := t.TempDir()
			write := func(path, text string) string {
				t.Helper()
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			for _, secret := range values.ProviderSecrets {
				write("secrets/"+secret+"/access-key", "key-1\n")
				write("secrets/"+secret+"/secret-key", "hidden-1\n")
			}
			for variable, value := range tc.injected {
				t.Setenv(variable, strings.NewReplacer("TOKEN", write("token", "token-1"), "CLOUD", cloud.URL).Replace(value))
			}
			for _, e := range values.ExtraEnv { // variables that the webhooks do not change
				t.Setenv(e.Name, e.Value)
			}
			for _, variable := range tc.service {
				t.Setenv(variable, cloud.URL)
			}
			t.Setenv("VKUBELET_ACI_CLOUD_CA_FILE", caFile)
			t.Setenv("VKUBELET_"+strings.ToUpper(name)+"_CA_FILE", caFile)
			config := write("provider.yaml", strings.ReplaceAll(values.ProviderConfig, "/etc/virtual-kubelet/secrets", filepath.Join(dir, "secrets")))

			all := providers()
			made, err := all[slices.IndexFunc(all, func(p cli.Provider) bool { return p.Name == name })].New(t.Context(), cli.ProviderInput{
				ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}}, ConfigPath: config, NodeName: name,
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := made.(cli.Examiner).Examine(ctx); err == nil {
				t.Error("the cloud refuses everything, and doctor finds nothing")
			} else if strings.Contains(err.Error(), "token-1") || strings.Contains(err.Error(), "hidden-1") {
				t.Errorf("a credential is shown: %v", err)
			}
			cloud.mu.Lock()
			defer cloud.mu.Unlock()
			if tc.changed != "" && !slices.Contains(cloud.changed, tc.changed) || tc.changed == "" && len(cloud.changed) > 0 {
				t.Errorf("got %q for credentials, want %q", cloud.changed, tc.changed)
			}
			if len(cloud.seen) == 0 {
				t.Error("the service was not asked")
			}
			for _, header := range cloud.seen {
				if !regexp.MustCompile(tc.shown).MatchString(header) {
					t.Errorf("got Authorization %q, want %q", header, tc.shown)
				}
			}
		})
	}
}
