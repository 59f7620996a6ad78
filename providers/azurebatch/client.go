// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// maxPages bounds the pages of a list. A page has up to 1000 tasks.
const maxPages = 500

// client is a Batch account. The errors of its methods have kinds; see batch.
type client struct {
	*azbatch.Client
	http *http.Client
}

// newClient returns a client for a complete configuration, and a function for tokens of its storage.
func newClient(c Config) (*client, func(context.Context) (string, error), error) {
	through, err := azlogin.HTTPClient(c.Cloud.CAFile)
	if err != nil {
		return nil, nil, err
	}
	credential, err := c.Credentials.Credential(c.Cloud.Authority, through)
	if err != nil {
		return nil, nil, err
	}
	b, err := azbatch.NewClient(c.Endpoint, scoped{credential, c.Cloud.Scope + "/.default"}, &azbatch.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: through, Telemetry: policy.TelemetryOptions{ApplicationID: "virtual-kubelet-batch"},
		Retry: policy.RetryOptions{MaxRetries: -1}, // the node waits for the retry delay of Batch
	}})
	upload := *through
	upload.Timeout = 0 // the program is large
	return &client{b, &upload}, func(ctx context.Context) (string, error) {
		token, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{azblobs.Scope + "/.default"}})
		if err != nil {
			return "", batch.Explain("log in for Azure Storage", err)
		}
		return token.Token, nil
	}, err
}

// scoped is a credential for one scope, because the SDK only knows the scope of the public cloud.
type scoped struct {
	next  azcore.TokenCredential
	scope string
}

// GetToken implements azcore.TokenCredential.
func (s scoped) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	options.Scopes = []string{s.scope}
	return s.next.GetToken(ctx, options)
}

// selected are the requested properties of tasks.
var selected = []string{"id", "displayName", "creationTime", "state", "stateTransitionTime", "executionInfo", "nodeInfo"}

// listTasks returns all tasks of a job.
func (c *client) listTasks(ctx context.Context, job string) (all []azbatch.Task, err error) {
	pages := c.NewListTasksPager(job, &azbatch.ListTasksOptions{SelectParam: selected})
	for n := 0; pages.More(); n++ {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, batch.Explain("list tasks", err)
		}
		if all = append(all, page.Value...); n >= maxPages {
			return nil, fmt.Errorf("list tasks: the list has more than %d pages", maxPages)
		}
	}
	return all, nil
}

func (c *client) readTask(ctx context.Context, job, id string) (azbatch.Task, error) {
	answer, err := c.GetTask(ctx, job, id, &azbatch.GetTaskOptions{SelectParam: selected})
	return answer.Task, batch.Explain("look at task "+id, err)
}

func (c *client) createTask(ctx context.Context, job string, t azbatch.CreateTaskContent) error {
	_, err := c.CreateTask(ctx, job, t, nil)
	return batch.Explain("create task "+*t.ID, err)
}

// deleteTask removes a task and kills its processes.
func (c *client) deleteTask(ctx context.Context, job, id string) error {
	_, err := c.DeleteTask(ctx, job, id, nil)
	return batch.Explain("delete task "+id, err)
}

func (c *client) createJob(ctx context.Context, j azbatch.CreateJobContent) error {
	_, err := c.CreateJob(ctx, j, nil)
	if err = batch.Explain("create job "+*j.ID, err); azlogin.CodeOf(err) == "JobExists" {
		return nil
	}
	return err
}

func (c *client) readPool(ctx context.Context, id string) (azbatch.Pool, error) {
	answer, err := c.GetPool(ctx, id, nil)
	return answer.Pool, batch.Explain("look at pool "+id, err)
}

// nodeState returns the state of a machine. It returns "" if the machine does not exist, or if this provider may
// not read it.
func (c *client) nodeState(ctx context.Context, pool, id string) (azbatch.NodeState, error) {
	answer, err := c.GetNode(ctx, pool, id, &azbatch.GetNodeOptions{SelectParam: []string{"id", "state"}})
	if err = batch.Explain("look at machine "+id, err); azlogin.Answered(err) && azlogin.StatusOf(err) != http.StatusTooManyRequests {
		return "", nil
	}
	return valueOf(answer.State), err
}

// valueOf returns the value of a pointer, and zero for nil.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// isoDuration returns a duration in the ISO 8601 format of Batch.
func isoDuration(d time.Duration) *string { return new(fmt.Sprintf("PT%dS", int64(d.Seconds()))) }
