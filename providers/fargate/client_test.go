// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// asked is a request to the server.
type asked struct {
	operation string
	body      map[string]any
}

// serve starts a server that answers with the status and the body that answer returns. It returns a client of
// the server and the recorded requests.
func serve(t *testing.T, answer func(asked) (int, string)) (*client, *[]asked) {
	t.Helper()
	var got []asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := asked{body: map[string]any{}}
		_, a.operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if err := json.NewDecoder(r.Body).Decode(&a.body); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKID/") {
			t.Errorf("%s is not signed: %q", a.operation, r.Header.Get("Authorization"))
		}
		got = append(got, a)
		status, body := answer(a)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
	c, err := newClient(t.Context(), testConfig(t, func(c *Config) { c.Endpoint = server.URL }))
	if err != nil {
		t.Fatal(err)
	}
	return c, &got
}

// TestErrorsHaveKinds also checks that a failed request is sent only once: the SDK does not retry.
func TestErrorsHaveKinds(t *testing.T) {
	for name, test := range map[string]struct {
		status         int
		code, message  string
		invalid, isNot bool
		after          time.Duration
		says           string
	}{
		"throttled":            {400, "ThrottlingException", "Rate exceeded", false, false, unsaid, "stop task x"},
		"throttled by status":  {429, "Strange", "", false, false, unsaid, ""},
		"many at once":         {400, "ClientException", "Too many concurrent attempts to create a new revision", false, false, unsaid, ""},
		"wrong":                {400, "ClientException", "No Fargate configuration exists", true, false, 0, "No Fargate"},
		"wrong parameter":      {400, "InvalidParameterException", "Container.image should not be null", true, false, 0, ""},
		"not there":            {400, "InvalidParameterException", "The referenced task was not found.", false, true, 0, ""},
		"no definition":        {400, "ClientException", "Unable to describe task definition.", false, true, 0, ""},
		"no cluster":           {400, "ClusterNotFoundException", "Cluster not found.", false, false, 0, "make it, or configure"},
		"no right":             {400, "AccessDeniedException", "not authorized", false, false, 0, "policy"},
		"failure":              {500, "ServerException", "oops", false, false, 0, ""},
		"failure, wrong words": {503, "ClientException", "The referenced task was not found.", false, false, 0, ""},
		"no words":             {404, "", "", false, false, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, got := serve(t, func(asked) (int, string) {
				if test.code == "" {
					return test.status, "not found"
				}
				return test.status, fmt.Sprintf(`{"__type":"com.amazonaws#%s","message":%q}`, test.code, test.message)
			})
			_, err := c.stop(t.Context(), "x", "test")
			if err == nil || errdefs.IsInvalidInput(err) != test.invalid || errdefs.IsNotFound(err) != test.isNot || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, invalid %t, not found %t", err, errdefs.IsInvalidInput(err), errdefs.IsNotFound(err))
			}
			if after, _ := errdefs.RetryAfterOf(err); after != test.after {
				t.Errorf("got %s to wait, want %s", after, test.after)
			}
			if len(*got) != 1 {
				t.Errorf("got %d requests, want one", len(*got))
			}
		})
	}
}

// TestListsAreWhole checks that a list follows pages and asks in batches, and that it fails if an answer lacks a
// task.
func TestListsAreWhole(t *testing.T) {
	lacks := false
	c, got := serve(t, func(a asked) (int, string) {
		if a.operation == "ListTasks" {
			if a.body["nextToken"] == nil {
				return 200, `{"taskArns":["a","b"],"nextToken":"2"}`
			}
			return 200, `{"taskArns":["c"]}`
		}
		var tasks []string
		for _, arn := range a.body["tasks"].([]any)[1:] {
			tasks = append(tasks, fmt.Sprintf(`{"taskArn":%q}`, arn))
		}
		if lacks {
			return 200, `{"tasks":[` + strings.Join(tasks, ",") + `]}`
		}
		return 200, fmt.Sprintf(`{"tasks":[%s],"failures":[{"arn":%q,"reason":"MISSING"}]}`, strings.Join(tasks, ","), a.body["tasks"].([]any)[0])
	})
	arns, err := c.started(t.Context(), "vk-x")
	if err != nil || !slices.Equal(arns, []string{"a", "b", "c"}) {
		t.Errorf("got %v, %v", arns, err)
	}
	if first := (*got)[0].body; first["startedBy"] != "vk-x" || first["desiredStatus"] != nil || first["cluster"] != "default" {
		t.Errorf("asked for %v: startedBy must be the only filter", first)
	}
	many := make([]string, 250)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	tasks, missing, err := c.describe(t.Context(), many)
	if err != nil || len(tasks) != 247 || !slices.Equal(missing, []string{"0", "100", "200"}) || len(*got) != 5 {
		t.Errorf("got %d tasks and %v missing after %d requests, %v", len(tasks), missing, len(*got), err)
	}
	lacks = true
	if _, _, err := c.describe(t.Context(), many); err == nil {
		t.Error("an answer that lacks a task is no error")
	}
}

// TestRunTellsFailures checks that a task without capacity is retried later and is not blamed on the pod.
func TestRunTellsFailures(t *testing.T) {
	c, _ := serve(t, func(asked) (int, string) {
		return 200, `{"tasks":[],"failures":[{"reason":"Capacity is unavailable at this time."}]}`
	})
	_, err := c.run(t.Context(), &ecs.RunTaskInput{TaskDefinition: new("x")})
	if after, _ := errdefs.RetryAfterOf(err); after != unsaid || errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "Capacity") {
		t.Errorf("got %v", err)
	}
}

// TestSecretIsKeptOnce checks that an existing secret is found and used.
func TestSecretIsKeptOnce(t *testing.T) {
	c, got := serve(t, func(a asked) (int, string) {
		if a.operation == "CreateSecret" {
			return 400, `{"__type":"ResourceExistsException","message":"exists"}`
		}
		return 200, `{"ARN":"arn:s","Name":"vk-s"}`
	})
	arn, err := c.keep(t.Context(), secret{name: "vk-s", owner: identity.Owner{Cluster: "home", Node: "node"}, text: `{"A":"b"}`})
	if err != nil || arn != "arn:s" || len(*got) != 2 || (*got)[0].body["SecretString"] != `{"A":"b"}` {
		t.Errorf("got %q, %v after %v", arn, err, *got)
	}
}
